// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// pinged is a node provider with the health of a backend.
type pinged struct {
	*memory.Backend
	NaiveNodeProvider
}

func (p pinged) Ping(ctx context.Context) error { return p.Backend.Ping(ctx) }

// becomes returns the time, to a tenth of a second, until the node's Ready condition has the status.
func becomes(t *testing.T, api *nodeAPI, want corev1.ConditionStatus, atMost time.Duration) time.Duration {
	t.Helper()
	for took := time.Duration(0); took <= atMost; took += 100 * time.Millisecond {
		if nodeCondition(api.node(), corev1.NodeReady).Status == want {
			return took
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("Ready is %+v, want %s within %v", nodeCondition(api.node(), corev1.NodeReady), want, atMost)
	return 0
}

func TestFault41HungPingTurnsTheNodeNotReady(t *testing.T) {
	const timeout = 5 * time.Second
	var notReady, back time.Duration
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New()
			api := newNodeAPI(t)
			b.Inject(memory.Fault{Method: memory.Ping, After: 1, Hang: true, Deaf: deaf})
			defer b.Heal()
			c, _ := startNode(t, pinged{Backend: b}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40), WithNodePingTimeout(timeout))
			becomes(t, api, corev1.ConditionTrue, time.Second)
			time.Sleep(DefaultPingInterval - time.Second) // just before the second Ping, which will hang
			took := becomes(t, api, corev1.ConditionFalse, 2*timeout+time.Second)
			notReady = max(notReady, took-time.Second)
			if took-time.Second > 2*timeout {
				t.Errorf("Ready=False %v after the hang, want at most %v", took-time.Second, 2*timeout)
			}
			if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Reason != reasonPingTimeout {
				t.Errorf("reason is %q, want %s", ready.Reason, reasonPingTimeout)
			}
			time.Sleep(5 * time.Minute)
			if isClosed(c.Done()) {
				t.Error("the controller has ended")
			}
			b.Heal()
			back = max(back, becomes(t, api, corev1.ConditionTrue, DefaultPingInterval))
		})
	}
	faultrow.Record(t, 41, "the second Ping hangs, once deaf to the end of its context", "Ready=False %v after it began, with a time-out of %v; Ready=True %v after the hang", notReady, timeout, back)
}

func TestFault42FirstPingsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		api := newNodeAPI(t)
		b.Inject(memory.Fault{Method: memory.Ping, Times: 5, Err: memory.ErrUnwell})
		c, _ := startNode(t, pinged{Backend: b}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		begin := time.Now()
		time.Sleep(4*DefaultPingInterval + time.Second)
		ready := nodeCondition(api.node(), corev1.NodeReady)
		if isClosed(c.Done()) || ready.Status != corev1.ConditionFalse || !strings.Contains(ready.Message, memory.ErrUnwell.Error()) {
			t.Errorf("after five Pings: ended %v, Ready is %+v", isClosed(c.Done()), ready)
		}
		becomes(t, api, corev1.ConditionTrue, DefaultPingInterval)
		faultrow.Record(t, 42, "the first 5 Pings fail", "the controller ran on, NotReady with the backend's error; Ready %v after the start, with the 6th Ping at %v", time.Since(begin), 5*DefaultPingInterval)
	})
}

// TestFault40RetryAfterIsHonoured: a backend takes half a minute per pod, fails for one pod in twenty, and refuses too many requests.
func TestFault40RetryAfterIsHonoured(t *testing.T) {
	const pods, after = 40, 45 * time.Second
	b := memory.New()
	tooMany := errdefs.RetryAfter(fmt.Errorf("429: %w", memory.ErrUnwell), after)
	inWorld(t, b, func(w *world) {
		for i := range pods {
			key := fmt.Sprint("d/p", i)
			switch {
			case i%20 == 0:
				b.Inject(memory.Fault{Method: memory.Create, Key: key, Times: 1, Delay: 30 * time.Second, Err: memory.ErrUnwell})
			case i%4 == 1:
				b.Inject(memory.Fault{Method: memory.Create, Key: key, Times: 3, Err: tooMany})
			}
		}
		b.Inject(memory.Fault{Method: memory.Create, Delay: 30 * time.Second})
		w.start()
		w.create("p", pods, time.Second)
		w.pass(20 * time.Second)
		open := metric(t, "virtual_kubelet_pods_waiting_for_retry")
		if open != pods/4 {
			t.Errorf("the metric says that %v pods wait for a retry, want %d", open, pods/4)
		}
		if got := w.api.Pod("d", "p1").Status.Message; !strings.Contains(got, "429") || !strings.Contains(got, "tried again") {
			t.Errorf("message is %q, want the error, and that it is tried again", got)
		}
		took := w.until("all run", 5*time.Minute, func() bool { return w.allRun("p", pods) })
		earliest := pausesAfterErrors(b.Ledger())
		if earliest < after {
			t.Errorf("tried again %v after an answer that asked for %v", earliest, after)
		}
		w.pass(time.Minute)
		closed := metric(t, "virtual_kubelet_pods_waiting_for_retry")
		if closed != 0 {
			t.Errorf("the metric says that %v pods wait for a retry, want none", closed)
		}
		faultrow.Record(t, 40, "CreatePod takes 30 s, fails for 1 pod in 20, and answers 429 with Retry-After 45 s three times for 10 of 40 pods",
			"the earliest retry after a 429 came after %v; pods in backoff by the metric: %v, and %v in the end; all ran after %v", earliest, open, closed, took+21*time.Second)
	})
}

// pausesAfterErrors returns the shortest pause between a throttled create and the next create of the same pod.
func pausesAfterErrors(entries []ledger.Entry) (least time.Duration) {
	refused := map[string]time.Time{}
	least = time.Hour
	for _, e := range entries {
		if e.Verb != ledger.Create {
			continue
		}
		if e.Step == ledger.End && strings.Contains(e.Err, "429") {
			refused[e.Key()] = e.At
		} else if at, was := refused[e.Key()]; was && e.Step == ledger.Begin {
			least = min(least, e.At.Sub(at))
			delete(refused, e.Key())
		}
	}
	return least
}
