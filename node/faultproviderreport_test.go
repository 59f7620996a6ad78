// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault38EndOutlivesOlderReports: older reports arrive after the end while the API server accepts no writes, and the end must not be
// lost.
func TestFault38EndOutlivesOlderReports(t *testing.T) {
	const pods = 50
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.create("p", pods, time.Second)
		w.pass(10 * time.Second)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" {
				<-time.After(20 * time.Second)
				return apierrors.NewServiceUnavailable("later")
			}
			return nil
		}
		b.Reports(memory.Reports{Reverse: 3, Copies: 1})
		begin := time.Now()
		for i := range pods {
			key := fmt.Sprint("d/p", i)
			b.Change(key, func(p *corev1.Pod) { p.Status.Message = "busy" })
			b.Change(key, func(p *corev1.Pod) { p.Status.Message = "busier" })
			b.Change(key, func(p *corev1.Pod) { *p = *memory.Ended(p, 3) }) // the third: all are delivered, with the end first
		}
		told := time.Since(begin)
		if told > pods*6*time.Millisecond {
			t.Errorf("%d reports took %v while the API server hangs, want at most 1ms each", pods*6, told)
		}
		w.pass(time.Minute)
		w.api.Fault = nil
		w.ctl.Kick()
		w.pass(time.Minute)
		for i := range pods {
			p := w.api.Pod("d", fmt.Sprint("p", i))
			if p.Status.Phase != corev1.PodFailed || p.Status.ContainerStatuses[0].State.Terminated == nil || p.Status.ContainerStatuses[0].State.Terminated.ExitCode != 3 {
				t.Errorf("pod %s is %s, want Failed with exit code 3", p.Name, p.Status.Phase)
			}
		}
		regressions := len(ledger.TerminalIsAbsorbing(b.Recorder.History())) + len(ledger.LastStatusWins(b.Recorder.History()))
		faultrow.Record(t, 38, "300 reports of 50 pods, the end before what was older, each twice, while writes hang and fail",
			"%d regressions of 50; the callbacks took %v in all while writes took 20 s", regressions, told)
	})
}

// TestFault38ReportsAboutTheUnknownAndTheDead: such reports cause no writes and no state.
func TestFault38ReportsAboutTheUnknownAndTheDead(t *testing.T) {
	const pods = 100
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.create("p", pods, time.Second)
		w.pass(10 * time.Second)
		for i := range pods { // replaced by pods of the same name
			name := fmt.Sprint("p", i)
			w.api.Delete("d", name, 0)
			w.api.Create(bound(name, ""))
		}
		w.pass(10 * time.Second)
		writes := len(w.api.Writes(""))
		for i := range pods {
			b.Tell(memory.Ended(bound(fmt.Sprint("p", i), "dead"), 1))
			b.Tell(memory.Ended(bound(fmt.Sprint("unknown", i), "u"), 1))
		}
		w.pass(5 * time.Minute)
		more := len(w.api.Writes("")) - writes
		if more != 0 || !w.allRun("p", pods) {
			t.Errorf("%d writes after reports about dead and unknown pods", more)
		}
		if n := w.ctl.states.size(); n != pods {
			t.Errorf("%d states for %d pods", n, pods)
		}
		faultrow.Record(t, 38, "100 terminal reports about dead UIDs of living names, and 100 about unknown pods", "%d writes, %d states for %d pods", more, w.ctl.states.size(), pods)
	})
}

func TestFault39FlappingStatusCostsOneWriteASecond(t *testing.T) {
	const flaps, others = 10_000, 20
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.create("p", others+1, time.Second)
		w.pass(10 * time.Second)
		before := len(w.api.Writes("d/p0"))
		begin := time.Now()
		var slowest time.Duration
		var waiting string
		var since time.Time
		for i := range flaps { // 1,000 per second
			b.Change("d/p0", func(p *corev1.Pod) { p.Status.Message = fmt.Sprint("flap ", i) })
			if i%400 == 0 {
				waiting, since = fmt.Sprint("p", 1+i/400%others), time.Now()
				b.Change("d/"+waiting, func(p *corev1.Pod) { p.Status.Message = fmt.Sprint("word ", i) })
			}
			w.pass(time.Millisecond)
			if waiting != "" && w.api.Pod("d", waiting).Status.Message == b.Has("d/"+waiting).Status.Message {
				slowest, waiting = max(slowest, time.Since(since)), ""
			}
		}
		if waiting != "" || slowest > time.Second {
			t.Errorf("the status of another pod took %v, and one is waited for: %q", slowest, waiting)
		}
		took := time.Since(begin)
		writes := len(w.api.Writes("d/p0")) - before
		if most := writeBurst + int(took/time.Second) + 1; writes > most {
			t.Errorf("%d writes in %v, want at most %d", writes, took, most)
		}
		newest := w.until("the newest is written", 2*time.Second, func() bool {
			return w.api.Pod("d", "p0").Status.Message == fmt.Sprint("flap ", flaps-1)
		})
		w.pass(10 * time.Second)
		faultrow.Record(t, 39, "10,000 reports of one pod in 10 s, each another status", "%d writes of it in %v, the newest %v after the last report; the slowest of 25 reports of other pods %v", writes, took, newest, slowest)
	})
}
