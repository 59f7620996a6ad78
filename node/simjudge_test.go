// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// judge returns the problems: broken invariants, and differences between the two sides at the end. Each problem begins with the name of
// what is broken.
func (w *simWorld) judge() (problems []string) {
	history := w.backend.Recorder.History()
	history.Ledger = w.knowable(history)
	for _, v := range ledger.Check(history) {
		problems = append(problems, v.String())
	}
	for _, overlap := range w.backend.Faults() {
		problems = append(problems, "Overlap: "+overlap)
	}
	for i := range simPods {
		if p := w.disagreement(fmt.Sprint("p", i)); p != "" && !w.draining {
			problems = append(problems, "Agreement: "+p)
		}
	}
	for key, n := range countRunning(history) {
		switch {
		case n > 1:
			problems = append(problems, fmt.Sprintf("Second instance: %s runs %d times", key, n))
		case w.draining:
			problems = append(problems, fmt.Sprintf("Drain: %s runs", key))
		}
	}
	problems = append(problems, w.createdTwice(history)...)
	problems = append(problems, w.deletedOften(history)...)
	ctl := w.life.ctl
	// The controller remembers a pod that is gone if the backend still keeps it.
	if have, want := ctl.states.size(), w.api.Len(); have < want || have > want+w.kept() {
		problems = append(problems, fmt.Sprintf("States: there are %d for %d pods, and %d ended ones", have, want, w.kept()))
	}
	if n := ctl.SyncPodsFromKubernetesQueueLen() + ctl.SyncPodStatusFromProviderQueueLen() + ctl.DeletePodsFromKubernetesQueueLen(); n != 0 {
		problems = append(problems, fmt.Sprintf("Queues: %d keys are left", n))
	}
	w.end()
	return append(problems, w.errs...)
}

// countRunning returns the number of instances that run in the end, by the name of their pod.
func countRunning(history ledger.History) map[string]int {
	keys := map[string]string{} // by instance
	for i := range history.Ledger {
		switch e := &history.Ledger[i]; e.Verb {
		case ledger.Start:
			keys[e.Instance] = e.Key()
		case ledger.Stop:
			delete(keys, e.Instance)
		}
	}
	all := map[string]int{}
	for _, key := range keys {
		all[key]++
	}
	return all
}

// kept counts the names for which the backend has only ended pods, and the API server none.
func (w *simWorld) kept() (n int) {
	for i := range simPods {
		if w.mayKeep() && w.api.Pod("d", fmt.Sprint("p", i)) == nil && w.backend.Has(fmt.Sprint("d/p", i)) != nil {
			n++
		}
	}
	return n
}

// mayKeep reports whether the backend may have ended pods that are unwanted: it keeps them, or returned not-found when it was asked to
// delete them.
func (w *simWorld) mayKeep() bool { return w.plan.KeepsEnded || w.plan.Lies == allLie }

// createdTwice finds calls of CreatePod for a running pod by a daemon that could know that it runs, because it created the pod or the API
// server had it as Running. An idempotent backend hides this mistake. A call without a response is repeated, because its effect is unknown.
func (w *simWorld) createdTwice(h ledger.History) (problems []string) {
	lags := slices.ContainsFunc(w.plan.Steps, func(s simStep) bool { return s.Do == "lag" })
	acked, failed, running := map[types.UID]time.Time{}, map[types.UID]time.Time{}, map[types.UID]bool{}
	next := 0
	shown := map[types.UID]corev1.PodPhase{}
	for i := range h.Ledger {
		e := &h.Ledger[i]
		for ; next < len(h.API) && h.API[next].Seq < e.Seq; next++ {
			shown[h.API[next].Pod.UID] = h.API[next].Pod.Status.Phase
		}
		switch {
		case e.Verb == ledger.Start:
			running[e.UID] = true
		case e.Verb == ledger.Stop:
			running[e.UID] = false
		case e.Verb == ledger.Create && e.Step == ledger.End && e.Err == "":
			acked[e.UID] = e.At
			delete(failed, e.UID)
		case e.Verb == ledger.Create && e.Step == ledger.End:
			failed[e.UID] = e.At
		case e.Verb == ledger.Create && e.Step == ledger.Begin && running[e.UID]:
			if at, again := failed[e.UID]; again && w.lifeAt(at) == w.lifeAt(e.At) {
				continue
			}
			at, created := acked[e.UID]
			if created && w.lifeAt(at) == w.lifeAt(e.At) || !lags && shown[e.UID] == corev1.PodRunning {
				problems = append(problems, fmt.Sprintf("Created twice: %s (UID %s), which runs, at %s", e.Name, e.UID, e.At.UTC().Format("15:04:05.000")))
			}
		}
	}
	return problems
}

// deletedOften finds ended pods that one life of the daemon asked the backend to stop more than twice, although each call was answered. The
// count restarts when another pod takes the name: all pods under the name must stop first, and only the stop of the last one is known. The
// daemon cannot know that a list with the running pod is old, regardless of the result of DeletePod: the stop may have failed, or the pod
// may have been started again. So each such list is a reason for another stop, which does not harm other pods, because DeletePod acts on
// the UID.
func (w *simWorld) deletedOften(h ledger.History) (problems []string) {
	type subject struct {
		key  string
		uid  types.UID
		life int
	}
	started, running := map[types.UID]bool{}, map[types.UID]int{}
	ended, often := map[types.UID]bool{}, map[subject]int{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range h.Ledger {
		switch e := &h.Ledger[i]; {
		case e.Verb == ledger.Start:
			started[e.UID] = true
			running[e.UID]++
		case e.Verb == ledger.Stop:
			running[e.UID]--
		case e.Verb == ledger.Create && e.Step == ledger.Begin:
			maps.DeleteFunc(often, func(s subject, _ int) bool { return s.key == e.Key() && s.uid != e.UID })
		case e.Verb == ledger.Delete && e.Step == ledger.Begin:
			ended[e.UID] = started[e.UID] && running[e.UID] == 0
		case e.Verb == ledger.Delete && ended[e.UID] && (e.Err == "" || e.Err == "no such pod"):
			s, shown := subject{e.Key(), e.UID, w.lifeAt(e.At)}, string(e.UID)
			if w.plan.KeepsNoUID {
				shown = ""
			}
			if often[s]++; often[s] > 2+w.oldLists[e.Key()+" "+shown] {
				problems = append(problems, fmt.Sprintf("Deleted often: %s (UID %s), which has ended, %d times by %s", e.Name, e.UID, often[s], e.At.UTC().Format("15:04:05.000")))
			}
		}
	}
	return problems
}

// lifeAt returns the number of the daemon's life at a time.
func (w *simWorld) lifeAt(at time.Time) int {
	n := 0
	for _, birth := range w.births {
		if !birth.After(at) {
			n++
		}
	}
	return n
}

// knowable removes the statuses that no daemon can know: of an instance that vanished before it was polled or while no daemon listened, and
// of reports that were lost with a daemon. A daemon also cannot know, without a report, how a deleted pod ended that the backend has not
// returned since the deletion, or since the restart after its end.
func (w *simWorld) knowable(h ledger.History) []ledger.Entry {
	entries := h.Ledger
	deleted := map[types.UID]int64{}   // since when
	shown := map[types.UID]time.Time{} // when the end of the pod was written to the API server
	doomed := map[types.UID]bool{}     // it was already deleted
	for i := range h.API {
		e := &h.API[i]
		if _, told := shown[e.Pod.UID]; !told && lifecycle.Terminal(&e.Pod.Status) {
			shown[e.Pod.UID], doomed[e.Pod.UID] = e.At, e.Pod.DeletionTimestamp != nil
		}
		if _, known := deleted[e.Pod.UID]; !known && e.Pod.DeletionTimestamp != nil {
			deleted[e.Pod.UID] = e.Seq
		}
	}
	lasting := map[types.UID]int64{} // since when the present instance exists
	for i := range simPods {
		p := w.backend.Has(fmt.Sprint("d/p", i))
		if p == nil {
			continue
		}
		for _, e := range slices.Backward(entries) { // the last started instance is the present one
			if e.Verb == ledger.Start && e.Key() == memory.Key(p) {
				lasting[e.UID] = e.Seq
				break
			}
		}
	}
	return slices.DeleteFunc(entries, func(e ledger.Entry) bool {
		since, lasts := lasting[e.UID]
		if asked, was := deleted[e.UID]; was && (asked < e.Seq || doomed[e.UID] && w.bornBlind(e.At, shown[e.UID])) && (w.plan.Silent || !w.lived(e.At)) && e.Status != nil && w.denied(e.At, shown[e.UID]) {
			return true
		}
		return e.Status != nil && (!lasts || e.Seq < since) && (w.plan.Silent || !w.lived(e.At))
	})
}

// denied reports whether there was a lie that includes reads at a time, or between it and until.
func (w *simWorld) denied(at, until time.Time) bool {
	return slices.ContainsFunc(w.denials, func(d simSpan) bool { return !at.After(d.to) && (!at.Before(d.from) || !until.Before(d.from)) })
}

// bornBlind reports whether the daemon that was alive at a time started after another time, during a lie that includes reads.
func (w *simWorld) bornBlind(after, at time.Time) bool {
	for _, born := range slices.Backward(w.births) {
		if !born.After(at) {
			return born.After(after) && w.denied(born, born)
		}
	}
	return false
}

// lived reports whether the daemon that was alive then is still alive.
func (w *simWorld) lived(at time.Time) bool {
	last := w.births[len(w.births)-1]
	return !at.Before(last)
}

// disagreement describes the difference between the API server's pod and the backend's.
func (w *simWorld) disagreement(name string) string {
	api, backend := w.api.Pod("d", name), w.backend.Has("d/"+name)
	running := backend != nil && backend.Status.Phase == corev1.PodRunning
	switch {
	case api == nil && backend != nil && (running || !w.mayKeep()):
		return fmt.Sprintf("%s (%s, %s) is left at the backend", name, backend.UID, backend.Status.Phase)
	case api == nil:
	case api.DeletionTimestamp != nil && len(api.Finalizers) == 0:
		return fmt.Sprintf("%s is deleted and still there: %+v", name, api.Status)
	case api.DeletionTimestamp != nil, lifecycle.Terminal(&api.Status):
		if running {
			return fmt.Sprintf("%s, deleted or %s, runs at the backend", name, api.Status.Phase)
		}
	case !running:
		return fmt.Sprintf("%s does not run at the backend; in the API server: %+v", name, api.Status)
	case backend.UID != "" && backend.UID != api.UID:
		return fmt.Sprintf("the backend has %s as %s, want %s", name, backend.UID, api.UID)
	case backend.Spec.Containers[0].Image != api.Spec.Containers[0].Image || backend.Labels["step"] != api.Labels["step"]:
		return fmt.Sprintf("the backend has %s with %s %v, want %s %v", name, backend.Spec.Containers[0].Image, backend.Labels, api.Spec.Containers[0].Image, api.Labels)
	case api.Status.Phase != corev1.PodRunning || api.Status.ObservedGeneration != api.Generation || api.Status.Reason != "":
		return fmt.Sprintf("%s, generation %d: %+v", name, api.Generation, api.Status)
	}
	return ""
}
