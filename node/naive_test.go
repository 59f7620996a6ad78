// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

func TestNaiveProviderUpdatesTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := NewNaiveNodeProvider()
		bare := testNode()
		bare.Status.Conditions = nil
		startNode(t, p, bare, api)
		if got := api.node().Status.Conditions; len(got) != 0 {
			t.Fatalf("conditions are %v, want those the provider gave: none", got)
		}
		if err := p.UpdateStatus(t.Context(), testNode()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := nodeCondition(api.node(), corev1.NodeReady).Status; got != corev1.ConditionTrue {
			t.Errorf("Ready is %q after UpdateStatus, want True", got)
		}
	})
}

func TestNaiveProviderWaitsForTheController(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewNaiveNodeProvider().UpdateStatus(ctx, testNode()); !errors.Is(err, context.Canceled) {
		t.Errorf("UpdateStatus returned %v, want the error of its context", err)
	}
}

func TestSecondNotifyNodeStatusReplacesTheFirst(t *testing.T) {
	p := NewNaiveNodeProvider()
	var got []string
	p.NotifyNodeStatus(t.Context(), func(*corev1.Node) { got = append(got, "first") })
	p.NotifyNodeStatus(t.Context(), func(*corev1.Node) { got = append(got, "second") })
	if err := p.UpdateStatus(t.Context(), testNode()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "second" {
		t.Errorf("UpdateStatus called %v, want the second function only", got)
	}
}

func TestNaiveNodeProviderPing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for _, p := range []NodeProvider{NaiveNodeProvider{}, &NaiveNodeProvider{}, NewNaiveNodeProvider()} {
		if err := p.Ping(ctx); err != nil {
			t.Errorf("%T: Ping returned %v, want nil", p, err)
		}
	}
	cancel()
	for _, p := range []NodeProvider{NaiveNodeProvider{}, NewNaiveNodeProvider()} {
		if err := p.Ping(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: Ping returned %v, want the error of its context", p, err)
		}
	}
}
