// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestEventsAreAggregatedAsAKubelets: of one pod, 25 at once and then one in 5 minutes are sent, and from the
// tenth that differs only in its words on, one event counts them.
func TestEventsAreAggregatedAsAKubelets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects, hub := fake.NewClientset(), &eventHub{}
		stop := hub.run(ctx, objects.CoreV1())
		defer func() { cancel(); stop() }()
		recorder := hub.recorder("virtual-kubelet", "n")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "a"}}
		say := func(n int) {
			for i := range n {
				recorder.Event(pod, corev1.EventTypeWarning, "ProviderCreateFailed", fmt.Sprintf("request %v %d", time.Now(), i))
				time.Sleep(time.Millisecond) // events of one moment have one name
				synctest.Wait()
			}
		}
		sent := func(want int, when string) {
			if got := len(objects.Actions()); got != want {
				t.Errorf("%s: %d requests, want %d", when, got, want)
			}
		}
		say(100)
		sent(25, "100 events at once")
		list, err := objects.CoreV1().Events("d").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 10 {
			t.Errorf("%d events (%v), want 9 and one that counts the others", len(list.Items), err)
		}
		objects.ClearActions()
		time.Sleep(time.Hour)
		say(100)
		sent(12, "100 an hour later")
	})
}
