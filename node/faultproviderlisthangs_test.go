// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// deafLists reads the list at once and returns it later, regardless of its context.
type deafLists struct {
	*memory.Backend
	mu          sync.Mutex
	takes       []time.Duration // guarded by mu; durations of the next lists
	calls       int             // guarded by mu
	under, most int             // guarded by mu; number of running calls
}

func (d *deafLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	d.mu.Lock()
	d.calls++
	d.under++
	d.most = max(d.most, d.under)
	takes := time.Duration(0)
	if len(d.takes) > 0 {
		takes, d.takes = d.takes[0], d.takes[1:]
	}
	d.mu.Unlock()
	pods, err := d.Backend.GetPods(ctx)
	if takes > 0 {
		<-time.After(takes)
	}
	d.mu.Lock()
	d.under--
	d.mu.Unlock()
	return pods, err
}

// next sets the durations of the next lists.
func (d *deafLists) next(takes ...time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takes = takes
}

// counts returns the number of calls, of running calls, and the maximum of running calls.
func (d *deafLists) counts() (calls, under, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls, d.under, d.most
}

// TestFault60ListThatHangsEndsNoPolling: the pods are polled one by one in the meantime, and the late list is too old to be used.
func TestFault60ListThatHangsEndsNoPolling(t *testing.T) {
	const pods, hangs, slow = 20, 3*time.Minute + 3*time.Second, 10 * time.Second
	b := &deafLists{Backend: memory.New()}
	inWorld(t, b.Backend, func(w *world) {
		w.start()
		w.create("p", pods, time.Second)
		w.pass(time.Minute)
		b.next(hangs, slow) // if the first list were used, this would show before the second arrives
		w.until("a list hangs", time.Minute, func() bool { _, under, _ := b.counts(); return under == 1 })
		returned := time.Now().Add(hangs)
		visible := time.Duration(0)
		for begin := time.Now(); time.Since(begin) < 2*time.Minute; {
			message := fmt.Sprint("at ", time.Since(begin))
			for i := range pods - 1 {
				b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { p.Status.Message = message })
			}
			visible = max(visible, w.until("the changes are visible", hangs, func() bool {
				for i := range pods - 1 {
					if w.api.Pod("d", fmt.Sprint("p", i)).Status.Message != message {
						return false
					}
				}
				return true
			}))
		}
		last := fmt.Sprint("p", pods-1)
		b.Change("d/"+last, func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
		visible = max(visible, w.until("the end of a pod is visible", hangs, func() bool { return w.phase(last) == corev1.PodSucceeded }))
		if visible > time.Minute {
			w.Errorf("a change was visible after %v, want one minute at most", visible)
		}
		b.Extra(bound("orphan", "o"))
		writes := len(w.api.Writes(""))
		w.pass(time.Until(returned) - time.Second)
		calls, _, _ := b.counts()
		w.pass(time.Second + 100*time.Millisecond)
		if now, _, _ := b.counts(); now != calls+1 {
			w.Errorf("%d calls of GetPods when the one that hung has returned, want one at once", now-calls)
		}
		orphan := w.until("the orphan is gone", slow+30*time.Second, func() bool { return b.Has("d/orphan") == nil })
		if n := len(w.api.Writes("")) - writes; n != 0 {
			w.Errorf("%d writes after the last change: what the list says was believed", n)
		}
		if _, _, n := b.counts(); n != 1 {
			w.Errorf("%d calls of GetPods were under way at once, want 1", n)
		}
		faultrow.Record(t, 60, fmt.Sprintf("a GetPods of %d polled pods takes %v, deaf to its context, the next one %v", pods, hangs, slow),
			"a change was visible after at most %v; an orphan was gone %v after the call had returned", visible, orphan)
	}, func(cfg *PodControllerConfig) { cfg.Provider, cfg.NodeName = b, "n" })
}

// TestRunWaitsForAListThatWasGivenUp: Run waits even if nothing waits for the result.
func TestRunWaitsForAListThatWasGivenUp(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		b.Inject(memory.Fault{Method: memory.List, Hang: true, Deaf: true})
		w.pass(10 * time.Minute)
		w.stop()
		w.stop = nil
		w.pass(time.Minute)
		select {
		case err := <-w.done:
			t.Fatalf("Run returned %v while a GetPods was under way", err)
		default:
		}
		b.Heal()
		if err := <-w.done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}, silent)
}
