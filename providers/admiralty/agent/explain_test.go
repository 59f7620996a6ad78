// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

// TestWaitingPodIsWrittenWhenTheReasonChanges has rounds that find the same reason with other numbers.
func TestWaitingPodIsWrittenWhenTheReasonChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := asks("pod", "3")
		pod.Namespace = "default"
		client := fake.NewClientset(pod)
		s, err := newScheduler(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.events = record.NewFakeRecorder(100)
		writes := func(says func(round int) string) int {
			client.ClearActions()
			for round := range 20 {
				s.explainWait(t.Context(), pod, says(round))
				time.Sleep(roundEvery)
			}
			return len(client.Actions())
		}
		if n := writes(func(int) string { return "it has no nodes" }); n != 1 {
			t.Errorf("one reason in 20 rounds is written %d times, want once", n)
		}
		if n := writes(func(round int) string { return fmt.Sprintf("at most %d free", round) }); n != 5 {
			t.Errorf("other numbers in 20 rounds, of 5 minutes, are written %d times, want once a minute", n)
		}
		if n := writes(func(round int) string { return "the reason " + string(rune('a'+round)) }); n != 20 {
			t.Errorf("20 reasons are written %d times", n)
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Message: "at most 3 free", LastTransitionTime: metav1.Now()}}
		clear(s.explained) // another agent wrote the condition
		client.ClearActions()
		if s.explainWait(t.Context(), pod, "at most 2 free"); len(client.Actions()) != 0 {
			t.Error("what another agent wrote just now is written again")
		}
	})
}
