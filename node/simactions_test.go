// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// simActions are the possible actions, the simplest first.
var simActions = []struct {
	name  string
	often int
	do    func(w *simWorld, s simStep)
}{
	// Users and other controllers.
	{"create", 8, func(w *simWorld, s simStep) { w.create(s) }},
	{"delete", 3, func(w *simWorld, s simStep) { w.user(s, func() { w.api.Delete("d", s.pod(), int64(s.Arg)) }) }},
	{"delete by default", 1, func(w *simWorld, s simStep) { w.user(s, func() { w.api.Delete("d", s.pod(), -1) }) }},
	{"delete by force", 1, func(w *simWorld, s simStep) { w.user(s, func() { w.api.Delete("d", s.pod(), 0) }) }},
	{"recreate", 3, func(w *simWorld, s simStep) { w.user(s, func() { w.api.Delete("d", s.pod(), 0) }); w.create(s) }},
	{"label", 3, changing(func(p *corev1.Pod, s simStep) { p.Labels = map[string]string{"step": fmt.Sprint(s.Arg)} })},
	{"image", 2, changing(func(p *corev1.Pod, _ simStep) { p.Spec.Containers[0].Image += "x" })},
	{"condition", 2, changing(func(p *corev1.Pod, s simStep) { p.Status.Conditions = withCondition(p.Status.Conditions, s.Arg) })},
	{"hold", 1, changing(func(p *corev1.Pod, _ simStep) {
		if p.DeletionTimestamp == nil {
			p.Finalizers = []string{"example.com/hold"}
		}
	})},
	{"release", 1, changing(func(p *corev1.Pod, _ simStep) { p.Finalizers = nil })},

	// The daemon.
	{"stop", 1, func(w *simWorld, _ simStep) { w.end() }},
	{"start", 3, func(w *simWorld, _ simStep) { w.start() }},
	{"crash", 2, func(w *simWorld, _ simStep) {
		if w.life != nil {
			w.life.crash()
		}
	}},
	{"crash with a later effect", 3, func(w *simWorld, s simStep) {
		if w.life != nil {
			w.life.plan(s.Arg + 1)
		}
	}},

	{"restart without a cache", 3, func(w *simWorld, s simStep) { w.restartBlind(s) }},

	// The backend.
	{"status", 3, func(w *simWorld, s simStep) {
		w.atBackend(s, func(p *corev1.Pod) { p.Status.Message += "." })
	}},
	{"annotate", 2, func(w *simWorld, s simStep) {
		w.atBackend(s, func(p *corev1.Pod) { setAnnotation(p, "provider", fmt.Sprint(s.Arg)) })
	}},
	{"end", 2, func(w *simWorld, s simStep) {
		w.atBackend(s, func(p *corev1.Pod) { *p = *memory.Ended(p, int32(s.Arg%2)) })
	}},
	{"lose", 1, func(w *simWorld, s simStep) { w.backend.Lose("d/" + s.pod()) }},
	{"provider fails", 4, func(w *simWorld, s simStep) {
		w.inject(s, memory.Fault{Err: memory.ErrUnwell})
	}},
	{"provider is slow", 3, func(w *simWorld, s simStep) { w.inject(s, memory.Fault{Delay: time.Duration(1+s.Pod*7) * time.Second}) }},
	{"provider hangs", 1, func(w *simWorld, s simStep) { w.inject(s, memory.Fault{Hang: true}) }},
	{"provider panics", 1, func(w *simWorld, s simStep) { w.inject(s, memory.Fault{Panic: "simulated"}) }},
	{"provider's answers are lost", 2, func(w *simWorld, s simStep) { w.inject(s, memory.Fault{LoseAnswer: true}) }},
	{"lists lie", 4, func(w *simWorld, s simStep) { w.lie(s) }},
	{"reports are odd", 2, func(w *simWorld, s simStep) {
		how := memory.Reports{Copies: s.Pod}
		if !w.plan.KeepsNoUID { // otherwise a late report would apply to the current pod of the name
			how.Delay, how.Reverse = time.Duration(s.Arg%3)*700*time.Millisecond, s.Arg/3*2
		}
		w.backend.Reports(how)
	}},
	{"provider is well", 2, func(w *simWorld, _ simStep) { w.backend.Heal() }},

	// The API server.
	{"requests fail", 3, func(w *simWorld, s simStep) { w.spoil(w.fail, simVerbs[s.Arg], 1+s.Pod) }},
	{"answers are lost", 2, func(w *simWorld, s simStep) { w.spoil(w.lose, simVerbs[s.Arg], 1+s.Pod) }},
	{"compact", 2, func(w *simWorld, _ simStep) { w.api.Compact() }},
	{"cut", 1, func(w *simWorld, _ simStep) { w.api.Cut() }},
	{"silence", 1, func(w *simWorld, _ simStep) { w.api.Silence() }},
	{"lag", 2, func(w *simWorld, s simStep) { w.api.Lag(max(0, w.api.Revision()-int64(2*s.Arg)), false) }},
	{"catch up", 1, func(w *simWorld, _ simStep) { w.api.CatchUp() }},

	{simSecond, 3, func(w *simWorld, s simStep) { w.addSecond(s) }},
}

// simSecond is the step in which an instance of another UID appears under the name of a running pod.
const simSecond = "second instance"

func (w *simWorld) addSecond(s simStep) {
	first := w.backend.Has("d/" + s.pod())
	if first == nil || first.Status.Phase != corev1.PodRunning || w.plan.KeepsNoUID {
		return
	}
	second := first.DeepCopy()
	w.uids++
	second.UID, second.Status = types.UID(fmt.Sprint("x", w.uids)), corev1.PodStatus{}
	w.backend.Extra(second)
}

// simVerbs and simMethods are the values that an Arg selects.
var (
	simVerbs   = [simArgs]string{"patch", "delete", "get", "list", "watch", "patch"}
	simMethods = [simArgs]string{memory.Create, memory.Delete, memory.Update, memory.Get, memory.Status, memory.List}
)

func (s simStep) pod() string { return fmt.Sprint("p", s.Pod) }

// create creates a pod, unless it exists. The pod has a label, because a restarted daemon concludes from a copy without labels that the
// backend keeps none. After a restart, and after a not-found for the older pod, a backend without UIDs cannot distinguish a new pod of the
// same name from the older one.
func (w *simWorld) create(s simStep) {
	nameless := w.plan.KeepsNoUID && (w.plan.restarts() || w.plan.Lies == allLie && w.plan.StopTime == 0)
	if w.api.Pod("d", s.pod()) != nil || nameless && w.mayHave(s.pod()) {
		return
	}
	w.uids++
	p := bound(s.pod(), types.UID(fmt.Sprint("u", w.uids)))
	w.last[s.pod()] = p.UID
	p.Labels = map[string]string{"step": "new"}
	p.Spec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}[s.Arg%3]
	grace := int64(s.Arg)
	p.Spec.TerminationGracePeriodSeconds = &grace
	w.api.Create(p)
}

// mayHave reports whether the backend has a pod of the name, or may still receive the last one, whose creation is running.
func (w *simWorld) mayHave(name string) bool {
	last, ended := w.last[name], false
	for _, e := range w.backend.Ledger() {
		ended = ended || e.Verb == ledger.Stop && e.UID == last
	}
	return w.backend.Has("d/"+name) != nil || last != "" && !ended
}

// user changes a pod as a user, if it exists.
func (w *simWorld) user(s simStep, do func()) {
	if w.api.Pod("d", s.pod()) != nil {
		do()
	}
}

func changing(change func(p *corev1.Pod, s simStep)) func(*simWorld, simStep) {
	return func(w *simWorld, s simStep) {
		w.user(s, func() { w.api.Change("d", s.pod(), func(p *corev1.Pod) { change(p, s) }) })
	}
}

// withCondition sets a condition of another writer.
func withCondition(conditions []corev1.PodCondition, value int) []corev1.PodCondition {
	gate := corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue, Reason: fmt.Sprint("R", value)}
	for i := range conditions {
		if conditions[i].Type == gate.Type {
			conditions[i] = gate
			return conditions
		}
	}
	return append(conditions, gate)
}

// atBackend changes a running instance.
func (w *simWorld) atBackend(s simStep, change func(*corev1.Pod)) {
	if p := w.backend.Has("d/" + s.pod()); p != nil && p.Status.Phase == corev1.PodRunning {
		w.backend.Change("d/"+s.pod(), change)
	}
}

// inject makes calls of a method fail. If only lists lie, failed reads of a pod have no kind, because otherwise the list would decide.
func (w *simWorld) inject(s simStep, f memory.Fault) {
	f.Method, f.Times = simMethods[s.Arg], 1+s.Pod
	reads := f.Method == memory.Get || f.Method == memory.Status
	if w.plan.Lies == listsLie && reads && (f.Err != nil || f.LoseAnswer) {
		f.Err = fmt.Errorf("simulated: %w", context.DeadlineExceeded)
	}
	if f.Method == memory.Create && f.Err != nil && s.Pod == 2 {
		f.Err, w.rejected = errdefs.InvalidInput("simulated"), true
	}
	w.backend.Inject(f)
}
