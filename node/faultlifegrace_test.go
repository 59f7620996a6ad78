// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// graceful records when it was asked for a stop with a grace period of one second.
type graceful struct {
	memory.Notifying
	mu   sync.Mutex
	sent []time.Time // guarded by mu
}

func (g *graceful) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if *pod.DeletionGracePeriodSeconds == 1 {
		g.mu.Lock()
		g.sent = append(g.sent, time.Now())
		g.mu.Unlock()
	}
	return g.Notifying.DeletePod(ctx, pod)
}

// asked returns the number of these requests.
func (g *graceful) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sent)
}

// TestFault63ShorterGraceIsSentAgain: the shorter grace period is a new request, to which the failures of the first one do not apply.
func TestFault63ShorterGraceIsSentAgain(t *testing.T) {
	var first, again, gone time.Duration
	for _, after := range []time.Duration{
		100 * time.Millisecond, 20 * time.Second, 70 * time.Second, 4 * time.Minute,
		300*time.Second + 500*time.Millisecond, // in the same second in which the longer one ends
		6 * time.Minute,
	} {
		t.Run(after.String(), func(t *testing.T) {
			g := &graceful{Notifying: memory.Notifying{Backend: memory.New()}}
			inWorld(t, g.Backend, func(w *world) {
				w.start()
				w.create("p", 1, time.Second)
				w.pass(10 * time.Second)
				g.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell})
				w.api.Delete("d", "p0", 300)
				w.pass(after)
				w.api.Delete("d", "p0", 1)
				begin := time.Now()
				first = max(first, w.until("the shorter grace is sent", 2*time.Minute, func() bool { return g.asked() > 0 }))
				w.until("it is sent again", 2*time.Minute, func() bool { return g.asked() > 1 })
				again = max(again, time.Since(begin))
				w.pass(time.Until(begin.Add(10 * time.Second)))
				g.Heal()
				w.until("the pod is gone", 2*time.Minute, func() bool { return w.phase("p0") == "" })
				gone = max(gone, time.Since(begin))
			}, func(cfg *PodControllerConfig) { cfg.Provider = g })
		})
	}
	if most := 30 * time.Second; first > most || again > most || gone > most {
		t.Errorf("a shorter grace was sent after %v and again after %v, and the pod was gone after %v: want %v at most", first, again, gone, most)
	}
	faultrow.Record(t, 63, "a grace of 300 s is shortened to 1 s while DeletePod fails, up to 6 min later; the backend heals 10 s after that",
		"sent after at most %v, again after %v; the pod was gone after %v", first, again, gone)
}

// TestAcknowledgedStopDoesNotCountForTheNext: the backend accepts a stop with a long grace period, and first refuses the stop with a
// shorter one.
func TestAcknowledgedStopDoesNotCountForTheNext(t *testing.T) {
	g := &graceful{Notifying: memory.Notifying{Backend: memory.New()}}
	g.StopTime = 2 * time.Minute
	inWorld(t, g.Backend, func(w *world) {
		w.start()
		w.create("p", 1, time.Second)
		w.pass(10 * time.Second)
		w.api.Delete("d", "p0", 300)
		w.pass(10 * time.Second)
		g.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell, Times: 1})
		w.api.Delete("d", "p0", 1)
		w.pass(5 * time.Second)
		if n := g.asked(); n != 2 {
			t.Errorf("the stop with the shorter grace was sent %d times, want again after the failure", n)
		}
		w.wantPhase("p0", corev1.PodRunning)
		w.pass(g.StopTime)
		w.wantPhase("p0", "")
	}, func(cfg *PodControllerConfig) { cfg.Provider = g })
}
