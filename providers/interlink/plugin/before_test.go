// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// authority is a provider that reports whether its lists are complete.
type authority struct {
	lists
	complete *bool
}

func (a authority) AnswersForAllPods() bool { return *a.complete }

// TestShortListAtAStart checks a running pod that is missing from the list of a provider that has just started.
// The plugin reports no status until a list has the pod, or until lists have lacked it for some time. Lists that
// the provider calls incomplete do not count.
func TestShortListAtAStart(t *testing.T) {
	s := newServer(t, nil)
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: longPod("u1")}); code != http.StatusOK {
		t.Fatal(code, body)
	}
	s.untilRuns(t)
	all := func(pods []*corev1.Pod) []*corev1.Pod { return pods }
	list := func([]*corev1.Pod) []*corev1.Pod { return nil }
	complete := false
	again := newServer(t, func(nodeutil.Provider) nodeutil.Provider { return authority{lists{s.pods.provider, &list}, &complete} })
	again.pods.store = s.pods.store
	if err := again.pods.recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	told := func(passed time.Duration) (int, string) {
		k := again.pods.get("u1")
		k.without = k.without.Add(-passed)
		if err := again.pods.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		code, body := again.send(t, http.MethodPost, "/status", []*corev1.Pod{longPod("u1")})
		if code != http.StatusOK {
			return code, body
		}
		return code, describe(again.pods.statuses([]*corev1.Pod{longPod("u1")})[0].Containers[0].State)
	}
	for range 3 {
		if code, body := told(time.Hour); code != http.StatusInternalServerError {
			t.Errorf("the provider knows that its list is short: %d %s", code, body)
		}
	}
	complete = true
	for range 3 {
		if code, body := told(0); code != http.StatusInternalServerError {
			t.Errorf("lists of one moment: %d %s", code, body)
		}
	}
	if code, body := told(lostFor); code != http.StatusOK || body != "terminated 137 "+wire.ReasonLost {
		t.Errorf("lost: %d %s", code, body)
	}
	list = all
	if code, body := told(0); code != http.StatusOK || body != "running" {
		t.Errorf("there again: %d %s", code, body)
	}
}
