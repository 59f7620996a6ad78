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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nodestate"
)

func TestNodeIsRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		c, stop := startNode(t, &pingScript{}, testNode(), api)
		if !isClosed(c.Ready()) {
			t.Fatal("Ready is not closed after registration")
		}
		node := api.node()
		if got := nodeCondition(node, corev1.NodeReady); got.Status != corev1.ConditionTrue || got.LastHeartbeatTime.IsZero() || got.LastTransitionTime.IsZero() {
			t.Errorf("Ready condition is %+v, want True with both times", got)
		}
		if node.Labels["type"] != "virtual-kubelet" || len(node.Spec.Taints) != 1 || node.Status.NodeInfo.KubeletVersion != "v1.37.1" {
			t.Errorf("node is %+v, want the given labels, taints and node info", node)
		}
		if isClosed(c.Done()) {
			t.Error("Done is closed while Run runs")
		}
		stop()
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was run before") {
			t.Errorf("second Run returned %v, want an error that says so", err)
		}
	})
}

func TestNodeControllerIsInertBeforeRun(t *testing.T) {
	api := newNodeAPI(t)
	p := &pingScript{}
	c, err := NewNodeController(p, testNode(), api.nodes, WithNodeEnableLeaseV1(api.leases, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got := api.taken(""); len(got) != 0 || p.calls != 0 || p.notify != nil {
		t.Errorf("before Run: requests %v, %d pings, callback set: %v; want none", got, p.calls, p.notify != nil)
	}
	if isClosed(c.Ready()) || isClosed(c.Done()) || c.Err() != nil {
		t.Error("Ready, Done or Err say something before Run")
	}
}

func TestNodeMayChangeUntilRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		node := testNode()
		c, err := NewNodeController(&pingScript{}, node, api.nodes)
		if err != nil {
			t.Fatal(err)
		}
		node.Labels["late"] = "yes"
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx) }()
		<-c.Ready()
		if api.node().Labels["late"] != "yes" {
			t.Errorf("labels are %v, want the one set before Run", api.node().Labels)
		}
		cancel()
		<-c.Done()
	})
}

func TestAPIDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		api.setFault(func(context.Context, string) error { return errAPIDown })
		c, _ := startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		time.Sleep(time.Hour)
		if isClosed(c.Done()) || isClosed(c.Ready()) {
			t.Fatal("the controller ended or is ready although the API server is down")
		}
		if n := len(api.taken("")); n < 3600/5 || n > 3600 {
			t.Errorf("%d requests in an hour without API server, want one every 1 to 5 seconds", n)
		}
		api.setFault(nil)
		time.Sleep(5 * time.Second)
		if !isClosed(c.Ready()) || nodeCondition(api.node(), corev1.NodeReady).Status != corev1.ConditionTrue {
			t.Error("the node is not registered 5 s after the API server came up")
		}
	})
}

func TestBlackholedRequestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		hang := func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		c, _ := startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		api.setFault(hang)
		api.deleteNode()
		time.Sleep(90 * time.Second)
		api.setFault(nil)
		time.Sleep(10 * time.Second)
		if got := nodeCondition(api.node(), corev1.NodeReady).Status; got != corev1.ConditionTrue || isClosed(c.Done()) {
			t.Errorf("Ready is %q 10 s after packets pass again, want True", got)
		}
		if age := time.Since(api.lease().Spec.RenewTime.Time); age > 10*time.Second {
			t.Errorf("the lease was renewed %s ago, want at most 10 s", age)
		}
	})
}

func TestNodeDeletedIsRegisteredAgain(t *testing.T) {
	forbidWatch := func(_ context.Context, request string) error {
		if request == "watch node" {
			return apierrors.NewForbidden(corev1.Resource("nodes"), testNodeName, errors.New("no watch"))
		}
		return nil
	}
	for name, test := range map[string]struct {
		fault  func(context.Context, string) error
		within time.Duration
	}{
		"seen by the watch":  {nil, time.Second},
		"watch is forbidden": {forbidWatch, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newNodeAPI(t)
				api.setFault(test.fault)
				startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
				for range 3 {
					time.Sleep(7 * time.Minute)
					before := api.node()
					api.deleteNode()
					time.Sleep(test.within)
					after := api.node()
					if after.UID == before.UID || len(after.Spec.Taints) != 1 || after.Labels["type"] == "" ||
						nodeCondition(after, corev1.NodeReady).Status != corev1.ConditionTrue {
						t.Errorf("node is %+v, want a new one with taints, labels and Ready=True", after)
					}
				}
			})
		})
	}
}

func TestExistingNodeIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
		existing := testNode()
		existing.UID = "first"
		existing.Labels = map[string]string{"zone": "a", "ours": "old"}
		existing.Spec.Taints = []corev1.Taint{{Key: "admin", Effect: corev1.TaintEffectNoExecute}}
		existing.Status.Conditions[0].LastTransitionTime = old
		existing.Status.Conditions[0].LastHeartbeatTime = old
		existing.Annotations = map[string]string{
			nodestate.LastAppliedMetadataAnnotation: `{"name":"virtual-1","labels":{"ours":"old"}}`,
			nodestate.LastAppliedStatusAnnotation:   `{"capacity":{"example.com/gpu":"1"},"conditions":[{"type":"Gone","status":"True"}]}`,
			"foreign":                               "yes",
		}
		existing.Status.Capacity["example.com/gpu"] = *existing.Status.Capacity.Cpu()
		existing.Status.Conditions = append(existing.Status.Conditions, corev1.NodeCondition{Type: "Gone", Status: corev1.ConditionTrue})
		api := newNodeAPI(t, existing)

		startNode(t, &pingScript{}, testNode(), api)
		node := api.node()
		if node.UID != "first" || node.Spec.Taints[0].Key != "admin" {
			t.Errorf("node is %s with taints %v, want the same node with the taints it had", node.UID, node.Spec.Taints)
		}
		if _, there := node.Labels["ours"]; there || node.Labels["zone"] != "a" || node.Labels["type"] == "" || node.Annotations["foreign"] != "yes" {
			t.Errorf("labels %v, annotations %v: want ours replaced and foreign ones kept", node.Labels, node.Annotations)
		}
		if _, there := node.Status.Capacity["example.com/gpu"]; there || nodeCondition(node, "Gone").Type != "" {
			t.Error("capacity and condition that an older version set and the provider dropped are still there")
		}
		if _, there := node.Annotations[nodestate.LastAppliedStatusAnnotation]; there {
			t.Error("the annotation of the older version is still there")
		}
		ready := nodeCondition(node, corev1.NodeReady)
		if !ready.LastTransitionTime.Equal(&old) || !ready.LastHeartbeatTime.After(old.Time) {
			t.Errorf("Ready is %+v, want a new heartbeat and the old transition time", ready)
		}
	})
}

func TestRestartKeepsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		_, stop := startNode(t, &pingScript{}, testNode(), api)
		stop()
		api.taken("")
		slow := &pingScript{script: func(context.Context) error {
			time.Sleep(3 * time.Second)
			return nil
		}}
		startNode(t, slow, testNode(), api)
		time.Sleep(5 * time.Second)
		for _, request := range api.taken("patch") {
			if strings.Contains(request, `"False","type":"Ready"`) {
				t.Errorf("a restart made the node unready: %s", request)
			}
		}
	})
}

func TestDroppedLabelIsRemovedAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		node := testNode()
		node.Labels["dropped"] = "yes"
		_, stop := startNode(t, &pingScript{}, node, api)
		stop()
		api.change(func(n *corev1.Node) { n.Labels["foreign"] = "yes" })
		startNode(t, &pingScript{}, testNode(), api)
		labels := api.node().Labels
		if _, there := labels["dropped"]; there || labels["foreign"] != "yes" || labels["type"] == "" {
			t.Errorf("labels are %v, want foreign and type, not dropped", labels)
		}
	})
}
