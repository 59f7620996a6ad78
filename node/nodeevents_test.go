// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/record"
)

// takeEvents returns the events so far.
func takeEvents(r *record.FakeRecorder) (events []string) {
	for {
		select {
		case e := <-r.Events:
			events = append(events, e)
		default:
			return events
		}
	}
}

// TestNodeHasOneEventForEachChange: the node starts, becomes ready, and becomes not ready while its provider does not answer.
func TestNodeHasOneEventForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, recorder, provider := newNodeAPI(t), record.NewFakeRecorder(1000), &pingScript{}
		_, stop := startNode(t, provider, testNode(), api, WithNodeEventRecorder(recorder))
		want := func(when string, want ...string) {
			t.Helper()
			if got := takeEvents(recorder); !slices.Equal(got, want) {
				t.Errorf("%s: the events are %q, want %q", when, got, want)
			}
		}
		const ready = "Normal NodeReady Node virtual-1 status is now: NodeReady"
		want("start", "Normal Starting This process acts for the node.", ready)
		time.Sleep(time.Hour)
		want("rest")
		provider.set(func(context.Context) error { return errors.New("the cloud is dark") })
		time.Sleep(time.Hour)
		want("dark", "Warning NodeNotReady Node virtual-1 status is now: NodeNotReady: ProviderPingFailed: the cloud is dark")
		provider.set(nil)
		time.Sleep(time.Minute)
		want("light", ready)
		stop()
		startNode(t, provider, testNode(), api, WithNodeEventRecorder(recorder))
		time.Sleep(time.Minute)
		want("restart", "Normal Starting This process acts for the node.")
	})
}

// TestWaitingProcessSaysStandbyOnce holds that the event names the other process, and that the node starts when the other process has
// ended.
func TestWaitingProcessSaysStandbyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(10)
		held := newLatest[bool]()
		r := newNodeReconciler(nodeSettings{node: testNode(), recorder: recorder, standsBy: func() (string, bool) { return "process 7 on host h", true }}, true)
		r.holds = held
		for _, ours := range []bool{false, false, true, true} {
			held.put(ours)
			r.takeHolds()
		}
		want := []string{
			"Normal Standby The process 7 on host h acts for the node, and this process waits for its end.",
			"Normal Starting This process acts for the node.",
		}
		if got := takeEvents(recorder); !slices.Equal(got, want) {
			t.Errorf("the events are %q, want %q", got, want)
		}
	})
	if err := WithNodeEventRecorder(nil)(&NodeController{}); err == nil {
		t.Error("a nil recorder is accepted")
	}
}
