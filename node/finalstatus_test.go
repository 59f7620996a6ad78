// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// finalStatus runs a pod whose reports take 100 ms, lets it end in the test, and expects the reported end.
func finalStatus(t *testing.T, b *memory.Backend, test func(w *world), configs ...func(*PodControllerConfig)) {
	t.Helper()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		b.Reports(memory.Reports{Delay: 100 * time.Millisecond})
		test(w)
		w.pass(10 * time.Second)
		w.wantPhase("p", "")
		if codes, phase := w.exitCodes("d/p"), w.last("d/p").Status.Phase; len(codes) != 1 || codes[0] != 0 || phase != corev1.PodSucceeded {
			w.Errorf("exit codes %v, phase %s; want 0 and Succeeded", codes, phase)
		}
	}, configs...)
}

// TestLookAtAPodThatHasJustStoppedWaitsForItsLastReport: a backend forgets the pod before it reports the end. A lookup in between must not
// write an invented end.
func TestLookAtAPodThatHasJustStoppedWaitsForItsLastReport(t *testing.T) {
	b := memory.New()
	b.StopTime = 5 * time.Second
	finalStatus(t, b, func(w *world) {
		w.api.Delete("d", "p", 30)
		w.pass(b.StopTime + 50*time.Millisecond)
		w.ctl.suspectPod("d/p") // as a list does
	})
}

// TestStopOfAPodThatHasJustEndedWaitsForItsLastReport: a backend with complete answers forgot the pod before the stop.
func TestStopOfAPodThatHasJustEndedWaitsForItsLastReport(t *testing.T) {
	b, complete := memory.New(), &atomic.Bool{}
	complete.Store(true)
	finalStatus(t, b, func(w *world) {
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
		b.Lose("d/p")
		w.pass(50 * time.Millisecond)
		w.api.Delete("d", "p", 30)
	}, func(cfg *PodControllerConfig) { cfg.Provider = authority{memory.Notifying{Backend: b}, complete} })
}

// TestPodThatShowsAgainIsWaitedForAnew: one answer without the pod, long before its end, is not the time at which it vanished.
func TestPodThatShowsAgainIsWaitedForAnew(t *testing.T) {
	b := memory.New()
	b.StopTime = 5 * time.Second
	finalStatus(t, b, func(w *world) {
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Get, Err: errdefs.NotFound("no such pod"), Times: 1})
		w.ctl.suspectPod("d/p")
		w.pass(b.StopTime - time.Second + 50*time.Millisecond)
		w.ctl.suspectPod("d/p")
	})
}

// TestSecondStopIsWaitedForAnew: the backend lists a pod that it does not return by name, and stops it at the second request.
func TestSecondStopIsWaitedForAnew(t *testing.T) {
	b := memory.New()
	b.StopTime = 200 * time.Millisecond
	finalStatus(t, b, func(w *world) {
		b.Inject(memory.Fault{Method: memory.Get, Err: errdefs.NotFound("no such pod")})
		b.Inject(memory.Fault{Method: memory.Delete, Err: errdefs.NotFound("no such pod"), Times: 1})
		w.api.Delete("d", "p", 30)
		w.pass(5 * time.Second)
	})
}
