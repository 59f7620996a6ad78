// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLostRightsAreSaid revokes the permission to list and watch after everything was listed, and grants it
// again. Without an error, pods would silently keep their last known status.
func TestLostRightsAreSaid(t *testing.T) {
	for _, what := range []string{"/pods?", "/configmaps?", "/secrets?", "/nodes?", "/pods?" + runningSelector} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &remote{}
				c := inMemory(t, r, 1, nil)
				c.UsePodTokens(&counted{})
				r.nodes.Items = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- c.RunInBackground(ctx) }()
				time.Sleep(time.Minute)
				if err := c.Ping(ctx); err != nil {
					t.Fatalf("Ping with all rights: %v", err)
				}
				r.refuse(what)
				time.Sleep(2 * time.Minute)
				for range 3 {
					if err := c.Ping(ctx); err == nil || !strings.Contains(err.Error(), "cannot list") {
						t.Errorf("Ping without the right to list: got %v", err)
					}
					time.Sleep(10 * time.Second)
				}
				r.refuse("")
				time.Sleep(2*time.Minute + time.Millisecond) // the requests of each full minute are done
				synctest.Wait()
				r.asked()
				if err := c.Ping(ctx); err != nil {
					t.Errorf("Ping with the rights again: %v", err)
				}
				first := r.asked()
				if err, second := c.Ping(ctx), r.asked(); err != nil || len(second) >= len(first) {
					t.Errorf("what was listed again is listed at each Ping: %v after %v (%v)", second, first, err)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
