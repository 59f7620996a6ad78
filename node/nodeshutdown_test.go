// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestShutDownNodeIsNotReady holds this for every status of the provider, while the lease is still renewed.
func TestShutDownNodeIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, p := newNodeAPI(t), &pingScript{}
		c, _ := startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Status != corev1.ConditionTrue {
			t.Fatalf("before the shutdown Ready is %+v", ready)
		}
		api.setFault(func(context.Context, string) error { return errAPIDown })
		c.ShutDown()
		time.Sleep(time.Second)
		api.setFault(nil)
		time.Sleep(reconcilerMaxRetry)
		synctest.Wait()
		want := func(when string) {
			t.Helper()
			ready := nodeCondition(api.node(), corev1.NodeReady)
			if ready.Status != corev1.ConditionFalse || ready.Reason != "KubeletNotReady" || ready.Message != "node is shutting down" {
				t.Errorf("%s Ready is %+v", when, ready)
			}
		}
		want("after the shutdown")
		p.set(func(context.Context) error { return errors.New("unwell") })
		time.Sleep(time.Minute)
		want("with an unhealthy provider")
		p.set(nil)
		p.say(testNode())
		c.ShutDown()
		time.Sleep(time.Minute)
		want("with a healthy provider")
		if renewed := api.lease().Spec.RenewTime.Time; time.Since(renewed) > 20*time.Second {
			t.Errorf("the lease was renewed %v ago", time.Since(renewed))
		}
	})
}

func TestShutDownBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		c, err := NewNodeController(&pingScript{}, testNode(), api.nodes)
		if err != nil {
			t.Fatal(err)
		}
		c.ShutDown()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		if ready := nodeCondition(api.node(), corev1.NodeReady); ready.Status != corev1.ConditionFalse {
			t.Errorf("Ready is %+v", ready)
		}
		cancel()
		<-c.Done()
	})
}
