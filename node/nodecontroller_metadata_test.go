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
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nodestate"
)

func forbidden(why string) error {
	return apierrors.NewForbidden(corev1.Resource("nodes"), testNodeName, errors.New(why))
}

func TestForbiddenLabelDoesNotStopTheStatus(t *testing.T) {
	// The rule of the NodeRestriction admission plugin.
	restriction := func(_ context.Context, request string) error {
		if strings.Contains(request, "kubernetes.io/role") && !strings.Contains(request, nodestate.OwnedStatusAnnotation) {
			return forbidden("is not allowed to set the following labels: kubernetes.io/role")
		}
		return nil
	}
	for name, exists := range map[string]bool{"created": false, "adopted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newNodeAPI(t)
				if exists {
					node := testNode()
					node.Labels, node.Status = nil, corev1.NodeStatus{}
					api = newNodeAPI(t, node)
				}
				api.setFault(restriction)
				node := testNode()
				node.Labels["kubernetes.io/role"] = "agent"
				c, _ := startNode(t, &pingScript{}, node, api, WithNodeEnableLeaseV1(api.leases, 40))
				got := api.node()
				if !isClosed(c.Ready()) || got.Labels["type"] == "" || nodeCondition(got, corev1.NodeReady).Status != corev1.ConditionTrue {
					t.Errorf("node is %+v, want registered with the label that is allowed", got)
				}
				time.Sleep(time.Minute)
				api.taken("")
				time.Sleep(20 * time.Minute)
				if n := len(api.taken("patch node {")); n != 0 {
					t.Errorf("%d metadata writes in 20 minutes, want none: the answer is known", n)
				}
			})
		})
	}
}

func TestForbiddenLabelIsTriedOnceAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := testNode()
		want.Labels["kubernetes.io/role"] = "agent"
		api := newNodeAPI(t, nodestate.New(want, &want.Status, nodestate.IsRestrictedLabel)) // as the last process left it
		api.setFault(func(_ context.Context, request string) error {
			if strings.HasPrefix(request, "patch node {") && strings.Contains(request, `"kubernetes.io/role":"agent"`) {
				return forbidden("is not allowed to modify labels: kubernetes.io/role")
			}
			return nil
		})
		p := &pingScript{}
		startNode(t, p, want, api, WithNodeEnableLeaseV1(api.leases, 40))
		for i := range 10 {
			node := want.DeepCopy()
			node.Status.Conditions[0].Message = fmt.Sprint(i)
			p.say(node)
			time.Sleep(time.Minute)
		}
		if n := len(api.taken("patch node {")); n != 1 {
			t.Errorf("%d metadata writes, want one: the answer is known then", n)
		}
	})
}

func TestRoleForStatusOnlyIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		existing := testNode()
		existing.Labels = nil
		api := newNodeAPI(t, existing)
		api.setFault(func(_ context.Context, request string) error {
			if strings.HasPrefix(request, "patch node {") || request == "watch node" {
				return forbidden("no such rule")
			}
			return nil
		})
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40))
		if got := api.node().Labels["type"]; got != "virtual-kubelet" {
			t.Errorf("label is %q with a role for nodes/status only, want it set", got)
		}
	})
}

func TestMetadataForbiddenIsTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		existing := testNode()
		existing.Labels = nil
		api := newNodeAPI(t, existing)
		api.setFault(func(_ context.Context, request string) error {
			if strings.HasPrefix(request, "patch") && !strings.Contains(request, "conditions") {
				return forbidden("metadata is ours")
			}
			return nil
		})
		c, _ := startNode(t, &pingScript{}, testNode(), api)
		time.Sleep(20 * time.Minute)
		if n := len(api.taken("patch node {")); n == 0 || n > 5 {
			t.Errorf("%d metadata writes in 20 minutes, want one every five minutes", n)
		}
		if !isClosed(c.Ready()) {
			t.Error("forbidden metadata kept the controller from being ready")
		}
	})
}
