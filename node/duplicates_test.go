// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestDuplicateIsLookedForBeforeItsNextStop: by its name that would end the pod, if the first one did what it was to do, although its answer
// was lost. What a list says that was asked for before is no look.
func TestDuplicateIsLookedForBeforeItsNextStop(t *testing.T) {
	for name, slow := range map[string]time.Duration{"lists are fast": 0, "a list is slow": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			b := &deafLists{Backend: memory.New()}
			inWorld(t, b.Backend, func(w *world) {
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(time.Minute)
				b.Extra(bound("p", "x"))
				b.Inject(memory.Fault{Method: memory.Delete, LoseAnswer: true, Delay: slow, Times: 1})
				b.Script(func(_ context.Context, method, _ string) error {
					if method == memory.Delete {
						b.next(slow, slow) // the first is asked for while the first stop is under way
					}
					return nil
				})
				w.until("it is said to have failed", time.Minute, func() bool { return w.api.Pod("d", "p").Status.Reason != "" })
				w.until("it is over, with the next list", 12*time.Second+2*slow, func() bool { return w.api.Pod("d", "p").Status.Reason == "" })
				w.pass(time.Minute)
				wantCalls(t, b.Backend, "create d/p", "delete d/p")
				w.wantPhase("p", corev1.PodRunning)
			}, onNode, func(c *PodControllerConfig) { c.Provider = notifyingLists{memory.Notifying{Backend: b.Backend}, b} })
		})
	}
}

// notifyingLists reports, and has lists that take their time.
type notifyingLists struct {
	memory.Notifying
	lists *deafLists
}

func (n notifyingLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	return n.lists.GetPods(ctx)
}

// TestDuplicateThatStopsAsAnOrphanIsAskedOnce: by the name the backend answers with the wrong one of two pods, which is stopped as an orphan. It takes
// its time, and the lists that still have it are no reason to ask again.
func TestDuplicateThatStopsAsAnOrphanIsAskedOnce(t *testing.T) {
	b := memory.New()
	b.StopTime = 20 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 1, corev1.RestartPolicyAlways)
		older := bound("p0", "x")
		older.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		b.Extra(older)
		w.pass(relistPeriod + time.Second) // a list has both
		w.ctl.suspect("d/p0")
		w.pass(2 * time.Minute)
		wantCalls(t, b, "create d/p0", "delete d/p0")
		w.wantPhase("p0", corev1.PodRunning)
	}, onNode, func(c *PodControllerConfig) { c.Provider = namesOthers{c.Provider.(memory.Notifying)} })
}

// namesOthers answers with the pod that it lists last under the name.
type namesOthers struct{ memory.Notifying }

func (n namesOthers) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pods, err := n.GetPods(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range slices.Backward(pods) {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, errdefs.NotFound("no such pod")
}
