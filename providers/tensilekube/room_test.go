// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// TestRoomIsNotKnownAtOnce has pods that were bound before the node knows the capacity of the lower cluster.
// They wait for it, and are not refused for lack of room.
func TestRoomIsNotKnownAtOnce(t *testing.T) {
	h := newHome(t, testapi.New(t, testapi.Options{NoScheduler: true}), startWorker(t, testapi.Start(t)))
	h.config.Capacity = nil
	h.proxy.Refuse()
	h.create("bound", 3)
	h.run()
	h.untilNotReady("remote cluster")
	if err := h.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	h.untilSettled(3)
}

// TestRoomLeavesTheNodeAsItIs has a capacity that becomes known late. Fields that were added to the node
// meanwhile are kept.
func TestRoomLeavesTheNodeAsItIs(t *testing.T) {
	u := newUpper(t, startWorker(t, testapi.Start(t)), "room", "vk-0")
	u.config.Capacity = nil
	p, n := u.make(), &corev1.Node{}
	p.ConfigureNode(t.Context(), n)
	n.Status.DaemonEndpoints.KubeletEndpoint.Port, n.Status.DeclaredFeatures = 10250, []string{"Feature"}
	told := make(chan *corev1.Node, 100)
	p.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told <- n })
	u.Run(p)
	late := time.After(remotetest.Patience)
	for {
		select {
		case got := <-told:
			if s := got.Status; s.DaemonEndpoints.KubeletEndpoint.Port != 10250 || len(s.DeclaredFeatures) != 1 {
				t.Fatalf("the node has the port %d and features %q", s.DaemonEndpoints.KubeletEndpoint.Port, s.DeclaredFeatures)
			}
			if !got.Status.Allocatable.Cpu().IsZero() { // before that, the worker had not reported its capacity
				return
			}
		case <-late:
			t.Fatal("the node is not told of its room")
		}
	}
}
