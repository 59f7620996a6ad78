// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func hangUntilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestFirstPingsMayFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{script: func(context.Context) error { return errors.New("backend is warming up") }}
		c, _ := startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(55 * time.Second)
		ready := nodeCondition(api.node(), corev1.NodeReady)
		if isClosed(c.Done()) || !isClosed(c.Ready()) {
			t.Fatal("a failing Ping ended the controller or kept the node from being registered")
		}
		if ready.Status != corev1.ConditionFalse || ready.Reason != reasonPingFailed || ready.Message != "backend is warming up" {
			t.Errorf("Ready is %+v, want False with the reason of the Ping", ready)
		}
		if ready, leader := metric(t, "virtual_kubelet_node_ready"), metric(t, "virtual_kubelet_node_leader"); ready != 0 || leader != 1 {
			t.Errorf("the metrics say %v and %v, want that the node is not ready and has a leader", ready, leader)
		}
		p.set(nil)
		time.Sleep(DefaultPingInterval)
		if ready := metric(t, "virtual_kubelet_node_ready"); ready != 1 {
			t.Errorf("the metric says %v, want that the node is ready", ready)
		}
		if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Status != corev1.ConditionTrue || ready.Reason != "KubeletReady" {
			t.Errorf("Ready is %+v one Ping after recovery, want what the provider says", ready)
		}
	})
}

func TestHungPingTurnsNodeNotReady(t *testing.T) {
	for name, hang := range map[string]func(context.Context) error{
		"ends with its context": hangUntilDone,
		"ignores its context": func(context.Context) error {
			time.Sleep(95 * time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newNodeAPI(t)
				p := &pingScript{}
				startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40), WithNodePingTimeout(5*time.Second))
				time.Sleep(DefaultPingInterval - time.Second)
				p.set(hang)
				time.Sleep(time.Second + 2*5*time.Second)
				ready := nodeCondition(api.node(), corev1.NodeReady)
				if ready.Status != corev1.ConditionFalse || ready.Reason != reasonPingTimeout || !strings.Contains(ready.Message, "5s") {
					t.Errorf("Ready is %+v two time-outs after a Ping hung, want False because of the time-out", ready)
				}
				time.Sleep(time.Minute)
				p.set(nil)
				time.Sleep(95 * time.Second)
				if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Status != corev1.ConditionTrue {
					t.Errorf("Ready is %+v after the hang, want True", ready)
				}
				if most := p.atOnce(); most != 1 {
					t.Errorf("%d Pings ran at one time, want one", most)
				}
			})
		})
	}
}

func TestHungPingDoesNotHoldUpTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &pingScript{script: func(context.Context) error {
			<-release
			return nil
		}}
		_, stop := startNode(t, p, testNode(), newNodeAPI(t))
		start := time.Now()
		stop()
		if took := time.Since(start); took > pingStopGrace {
			t.Errorf("the stop took %s, want at most %s", took, pingStopGrace)
		}
		close(release)
	})
}

func TestPanicInPingIsAFailedPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{script: func(context.Context) error { panic("nil map") }}
		c, _ := startNode(t, p, testNode(), api)
		if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Status != corev1.ConditionFalse || !strings.Contains(ready.Message, "nil map") {
			t.Errorf("Ready is %+v, want False with the value of the panic", ready)
		}
		if isClosed(c.Done()) {
			t.Error("a panic in Ping ended the controller")
		}
	})
}

func TestHealthyHookIsCalledAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := 0
		p := &pingScript{}
		startNode(t, p, testNode(), newNodeAPI(t), WithNodeHealthyHook(func() { called++ }))
		time.Sleep(time.Minute)
		synctest.Wait()
		if called != 0 {
			t.Fatalf("the hook was called %d times although no Ping failed", called)
		}
		p.set(func(context.Context) error { return errors.New("down") })
		time.Sleep(time.Minute)
		p.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if called != 1 {
			t.Errorf("the hook was called %d times after one recovery, want once", called)
		}
	})
}

func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api)
		began := nodeCondition(api.node(), corev1.NodeReady).LastTransitionTime
		time.Sleep(2 * time.Minute)
		node := testNode()
		node.Status.Conditions[0].Message = "still ready"
		p.say(node)
		time.Sleep(time.Second)
		ready := nodeCondition(api.node(), corev1.NodeReady)
		if !ready.LastTransitionTime.Equal(&began) || ready.Message != "still ready" {
			t.Errorf("Ready is %+v, want the new message and the transition time %s", ready, began)
		}
		p.set(func(context.Context) error { return errors.New("down") })
		time.Sleep(time.Minute)
		fell := nodeCondition(api.node(), corev1.NodeReady).LastTransitionTime
		if d := fell.Sub(began.Time); d < 2*time.Minute || d > 2*time.Minute+15*time.Second {
			t.Errorf("the condition fell %s after the start, want at the first failed Ping", d)
		}
		p.set(nil)
		time.Sleep(time.Minute)
		if rose := nodeCondition(api.node(), corev1.NodeReady).LastTransitionTime; !fell.Before(&rose) {
			t.Errorf("the condition rose at %s, want after it fell at %s", rose, fell)
		}
	})
}

func TestChattyPingErrorIsNotWrittenEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{script: func(context.Context) error { return errors.New("down at " + time.Now().String()) }}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(time.Hour)
		if n := len(api.taken("patch node")); n > 72 {
			t.Errorf("%d writes in an hour of failing Pings, want about one a minute", n)
		}
	})
}
