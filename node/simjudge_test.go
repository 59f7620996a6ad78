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

// judge returns what went wrong: invariants that what happened breaks, and what
// the two sides do not agree on in the end. Each begins with the name of what is
// broken.
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
	// What the backend keeps of a pod that is gone is remembered.
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

// kept counts the names of which the backend has only what has ended, and the API server nothing.
func (w *simWorld) kept() (n int) {
	for i := range simPods {
		if w.mayKeep() && w.api.Pod("d", fmt.Sprint("p", i)) == nil && w.backend.Has(fmt.Sprint("d/p", i)) != nil {
			n++
		}
	}
	return n
}

// mayKeep reports whether the backend may have pods that have ended and that nobody wants: it keeps them, or said
// that it had none when it was told to delete them.
func (w *simWorld) mayKeep() bool { return w.plan.KeepsEnded || w.plan.Lies == allLie }

// createdTwice finds calls of CreatePod for a pod that runs, by a daemon that knew it: it created
// it, or the API server had it as Running. An idempotent backend hides that mistake. A call whose
// answer did not arrive is sent again: what it did is not known.
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

// deletedOften finds pods that had ended and that one life of the daemon told the backend to stop
// more than twice, although each of these calls was answered. Each pod that takes the name since begins
// anew: what is under the name must go first, and only of the last one it is known that it did. Nor can
// anybody know that a list is old which has the pod as running, whatever DeletePod answered: the stop may not have happened, or
// the pod was started again. Each such list is reason to tell it again; as DeletePod acts on the UID, that ends no other pod.
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

// lifeAt is the number of the daemon's life at a time.
func (w *simWorld) lifeAt(at time.Time) int {
	n := 0
	for _, birth := range w.births {
		if !birth.After(at) {
			n++
		}
	}
	return n
}

// knowable leaves out the statuses that no daemon can know of: of an instance that
// went before it was polled or while nobody listened, or whose report died with the
// daemon that had it. Nor can it know how a deleted pod ended that the backend denies, without a report: since its
// deletion, or since the restart that came after the end.
func (w *simWorld) knowable(h ledger.History) []ledger.Entry {
	entries := h.Ledger
	deleted := map[types.UID]int64{}   // since when
	shown := map[types.UID]time.Time{} // when the API server was told how the pod ended
	doomed := map[types.UID]bool{}     // it was deleted by then
	for i := range h.API {
		e := &h.API[i]
		if _, told := shown[e.Pod.UID]; !told && lifecycle.Terminal(&e.Pod.Status) {
			shown[e.Pod.UID], doomed[e.Pod.UID] = e.At, e.Pod.DeletionTimestamp != nil
		}
		if _, known := deleted[e.Pod.UID]; !known && e.Pod.DeletionTimestamp != nil {
			deleted[e.Pod.UID] = e.Seq
		}
	}
	lasting := map[types.UID]int64{} // since when an instance is there that is still there
	for i := range simPods {
		p := w.backend.Has(fmt.Sprint("d/p", i))
		if p == nil {
			continue
		}
		for _, e := range slices.Backward(entries) { // the last that began is the one that is there
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

// denied reports whether a lie that reads tell, too, was told at a time, or after it until another.
func (w *simWorld) denied(at, until time.Time) bool {
	return slices.ContainsFunc(w.denials, func(d simSpan) bool { return !at.After(d.to) && (!at.Before(d.from) || !until.Before(d.from)) })
}

// bornBlind reports whether the daemon that was alive at a time was born after another, and was told a lie then that reads tell, too.
func (w *simWorld) bornBlind(after, at time.Time) bool {
	for _, born := range slices.Backward(w.births) {
		if !born.After(at) {
			return born.After(after) && w.denied(born, born)
		}
	}
	return false
}

// lived reports whether the daemon that was alive then lives on.
func (w *simWorld) lived(at time.Time) bool {
	last := w.births[len(w.births)-1]
	return !at.Before(last)
}

// disagreement says what differs between the API server's pod and the backend's.
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
