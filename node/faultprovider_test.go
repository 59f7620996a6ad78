// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestFault06PanicsCostOnePodABackoff(t *testing.T) {
	before := metric(t, "virtual_kubelet_provider_panics_total")
	const others = 20
	var slowest time.Duration
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				for _, method := range []string{memory.Create, memory.Update, memory.Get, memory.Status, memory.Delete} {
					b.Inject(memory.Fault{Method: method, Key: "d/bad", Times: 3, Panic: "boom in " + method})
				}
				b.Inject(memory.Fault{Method: memory.List, Times: 3, Panic: "boom in list"})
				w.api.Create(bound("bad", "bad"))
				w.create("good", others, time.Second)
				slowest = max(slowest, w.until("the good pods run", 10*time.Second, func() bool { return w.allRun("good", others) }))
				w.until("the bad pod runs", time.Minute, func() bool { return w.phase("bad") == corev1.PodRunning })
				if e := strings.Join(w.events(), "\n"); !strings.Contains(e, "ProviderCreateFailed") || !strings.Contains(e, "provider panicked in CreatePod: boom in create") {
					t.Errorf("events do not tell of the panic: %s", e)
				}
				w.api.Change("d", "bad", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
				w.until("the bad pod is updated", time.Minute, func() bool {
					return b.Has("d/bad").Spec.Containers[0].Image == "j" && w.api.Pod("d", "bad").Status.Message == ""
				})
				w.api.Delete("d", "bad", 1)
				w.until("the bad pod is gone", time.Minute, func() bool { return w.phase("bad") == "" })
				w.pass(time.Minute)
			}, configs...)
		})
	}
	panics := metric(t, "virtual_kubelet_provider_panics_total") - before
	if panics < 2*3*4 {
		t.Errorf("%v panics were counted, want at least %d", panics, 2*3*4)
	}
	faultrow.Record(t, 6, "3 panics in each of CreatePod, UpdatePod, DeletePod, GetPod, GetPodStatus and GetPods, for a provider that reports and one that is polled",
		"%.0f panics counted, the process lived; 20 other pods ran within %v; the pod showed the panic and converged after each", panics, slowest)
}

func TestFault06PanicAtTheStartIsAnErrorOfRun(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Notify, Panic: "boom"})
	var pods error
	inWorld(t, b, func(w *world) {
		w.launch()
		pods = <-w.done
		w.stop()
		w.stop = nil
	})
	var nodes error
	synctest.Test(t, func(t *testing.T) {
		c, err := NewNodeController(panicsAtStart{}, testNode(), newNodeAPI(t).nodes)
		if err != nil {
			t.Fatal(err)
		}
		nodes = c.Run(t.Context())
	})
	for who, err := range map[string]error{"NotifyPods": pods, "NotifyNodeStatus": nodes} {
		var caught *providercall.Panic
		if !errors.As(err, &caught) || caught.Method != who {
			t.Errorf("%s panicked: Run returned %v, want an error that says so", who, err)
		}
	}
	faultrow.Record(t, 6, "a panic in NotifyPods and one in NotifyNodeStatus", "Run returned %q and %q", pods, nodes)
}

type panicsAtStart struct{ NaiveNodeProvider }

func (panicsAtStart) NotifyNodeStatus(context.Context, func(*corev1.Node)) { panic("boom") }

// TestFault07HungCallsHoldUpNobody: ten calls hang, half of them ignore their context, and there are four workers.
func TestFault07HungCallsHoldUpNobody(t *testing.T) {
	const hung, pods = 10, 400
	b := memory.New()
	inWorld(t, b, func(w *world) {
		for i := range hung {
			b.Inject(memory.Fault{Method: memory.Create, Key: fmt.Sprint("d/hung", i), Hang: true, Deaf: i%2 == 0})
		}
		b.Inject(memory.Fault{Method: memory.Create, Delay: 10 * time.Millisecond})
		w.start()
		w.create("usual", pods/4, 10*time.Second)
		w.create("hung", hung, 0)
		w.create("during", pods, 40*time.Second)
		usual, during := w.startTimes("usual"), w.startTimes("during")
		if p99(during) > 2*p99(usual) {
			t.Errorf("with hung calls, p99 of the start is %v, without %v", p99(during), p99(usual))
		}
		told := w.events()
		for i := range hung {
			if got := w.api.Pod("d", fmt.Sprint("hung", i)).Status.Message; !strings.Contains(got, "CreatePod was called at") || !strings.Contains(got, "has not returned") {
				t.Errorf("message of hung%d is %q, want the call that hangs", i, got)
			}
		}
		events := len(slices.DeleteFunc(told, func(e string) bool { return !strings.Contains(e, eventCallHangs) }))
		if events != hung {
			t.Errorf("%d events %s, want %d", events, eventCallHangs, hung)
		}
		w.pass(10 * time.Minute) // the timeout ends the calls that respect their context
		var cancelled int
		for _, e := range w.events() {
			if strings.Contains(e, eventCreateFailed) && strings.Contains(e, context.DeadlineExceeded.Error()) {
				cancelled++
			}
		}
		if cancelled != hung/2 {
			t.Errorf("%d calls were cancelled, want %d", cancelled, hung/2)
		}
		b.Heal()
		w.ctl.Kick()
		healed := w.until("the hung pods run", 10*time.Second, func() bool { return w.allRun("hung", hung) })
		w.pass(10 * time.Second)
		if got := w.api.Pod("d", "hung0").Status.Message; got != "" {
			t.Errorf("the call has returned, and the pod says %q", got)
		}
		faultrow.Record(t, 7, "10 CreatePods that hang, 5 of them deaf to the end of their context, with 4 workers",
			"start of 400 other pods p99 %v, %v without (10 ms each), slowest %v; %d events while they hung, %d cancelled at the deadline; all ran %v after the end",
			p99(during), p99(usual), during[len(during)-1], events, cancelled, healed)
	})
}
