// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestSteadyStateIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(time.Minute)
		api.taken("")
		time.Sleep(time.Hour)
		synctest.Wait()
		counts := map[string]int{}
		for _, request := range api.taken("") {
			kind, _, _ := strings.Cut(request, "{")
			counts[strings.TrimSpace(kind)]++
		}
		if n := counts["update lease"]; counts["patch node/status"] != 12 || n < 359 || n > 361 || len(counts) != 2 {
			t.Errorf("requests in an hour: %v, want 12 status reports and about 360 lease renewals only", counts)
		}
	})
}

func TestWithoutLeaseTheNodeIsTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api)
		p.set(func(context.Context) error { return errors.New("down") })
		for range 30 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if age := time.Since(nodeCondition(api.node(), corev1.NodeReady).LastHeartbeatTime.Time); age > 11*time.Second {
				t.Fatalf("the last heartbeat is %s old, want at most one ping interval", age)
			}
		}
	})
}

func TestForeignConditionSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api)
		lost := 0
		for i := range 100 {
			api.change(func(n *corev1.Node) {
				n.Labels["counter"] = fmt.Sprint(i)
				n.Annotations["counter"] = fmt.Sprint(i)
				for j := range n.Status.Conditions {
					if n.Status.Conditions[j].Type == "Foreign" {
						n.Status.Conditions[j].Message = fmt.Sprint(i)
						return
					}
				}
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Foreign", Status: corev1.ConditionTrue, Message: "0"})
			})
			node := testNode()
			node.Labels["ours"] = fmt.Sprint(i)
			node.Status.Conditions[0].Message = fmt.Sprint(i)
			p.say(node)
			time.Sleep(time.Second)
			got := api.node()
			if want := fmt.Sprint(i); nodeCondition(got, "Foreign").Message != want || got.Labels["counter"] != want || got.Annotations["counter"] != want ||
				got.Labels["ours"] != want || nodeCondition(got, corev1.NodeReady).Message != want {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of 100 writes were lost", lost)
		}
	})
}

func TestForeignWritersCauseNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.taken("")
		for i := range 500 {
			api.change(func(n *corev1.Node) { n.Annotations["counter"] = fmt.Sprint(i) })
			time.Sleep(20 * time.Millisecond)
		}
		if got := api.taken("patch"); len(got) != 0 {
			t.Errorf("foreign changes made us write %v, want nothing", got)
		}
	})
}

func TestDriftIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(time.Minute)
		api.taken("")
		for range 100 {
			api.change(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if got := nodeCondition(api.node(), corev1.NodeReady); got.Status != corev1.ConditionTrue {
			t.Errorf("Ready is %+v 10 s after another writer changed it, want what we say", got)
		}
		if n := len(api.taken("patch")); n > 12 {
			t.Errorf("%d writes in 110 s of fighting, want at most one every 10 s", n)
		}
	})
}

// TestChangeDuringAWriteIsRepaired makes another writer change the node between the creation and the application of a patch. The response
// has a difference that was not sent, so the API server has not ignored anything.
func TestChangeDuringAWriteIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(time.Minute)
		api.setFault(func(_ context.Context, request string) error {
			if !strings.HasPrefix(request, "patch node/status") {
				return nil
			}
			api.setFault(nil)
			api.change(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
			return nil
		})
		node := testNode()
		node.Status.Phase = corev1.NodePending
		p.say(node)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := nodeCondition(api.node(), corev1.NodeReady).Status; got != corev1.ConditionTrue {
			t.Errorf("30 s after another writer made Ready Unknown it is %s, want True", got)
		}
	})
}

func TestFieldTheServerDropsIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		api.strip = func(n *corev1.Node) { n.Status.NodeInfo.BootID = "" }
		node := testNode()
		node.Status.NodeInfo.BootID = "dropped"
		p := &pingScript{}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		p.say(node)
		time.Sleep(time.Hour)
		if n := len(api.taken("patch")); n < 12 || n > 14 {
			t.Errorf("%d writes in an hour, want the first one and the regular reports", n)
		}
	})
}

func TestReportsAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.taken("")
		node := testNode()
		for i := range 1000 {
			node.Status.Conditions[0].Message = fmt.Sprint(i)
			p.say(node)
			time.Sleep(time.Millisecond)
		}
		node.Status.Conditions[0].Message = "changed after the call"
		time.Sleep(writeSpacing)
		if got := nodeCondition(api.node(), corev1.NodeReady).Message; got != "999" {
			t.Errorf("message is %q, want that of the last report", got)
		}
		if n := len(api.taken("patch")); n > 12 {
			t.Errorf("1000 reports in a second made %d writes, want at most one every 100 ms", n)
		}
	})
}
