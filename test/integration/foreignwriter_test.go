// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

const gate = corev1.PodConditionType("example.test/gate")

func TestReadinessGateOfAnotherWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	pod := w.pod("gated")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
	w.create(pod)
	waiting := w.awaitPod("gated", "waits for its gate", func(pod *corev1.Pod) bool {
		c := condition(pod, corev1.PodReady)
		return pod.Status.Phase == corev1.PodRunning && c != nil && c.Reason == "ReadinessGatesNotReady"
	})
	before := len(w.requests.podWrites()[w.key("gated")])

	const writes = 150
	seen := w.follow(waiting, writes)
	w.writeGate(writes)
	if err := <-seen; err != nil {
		t.Error(err)
	}
	if n := len(w.requests.podWrites()[w.key("gated")]) - before; n < 3 {
		t.Errorf("the node wrote %d times meanwhile, so this test shows nothing", n)
	}
	w.awaitPod("gated", "is ready", running)

	w.patchGate(writes+1, corev1.ConditionFalse)
	w.awaitPod("gated", "is not ready", func(pod *corev1.Pod) bool {
		c := condition(pod, corev1.PodReady)
		return c.Status == corev1.ConditionFalse && conditionTrue(pod, corev1.ContainersReady)
	})
}

// writeGate writes the gate n times, about fifty times a second, while the node also writes to the pod.
func (w *world) writeGate(n int) {
	w.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := 1; i <= n; i++ {
		status := corev1.ConditionFalse
		if i%2 == n%2 {
			status = corev1.ConditionTrue // also the last one
		}
		w.patchGate(i, status)
		w.backend.Change(w.key("gated"), func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].Ready = i%10 > 4 || i == n
			pod.Status.ContainerStatuses[0].RestartCount = int32(i)
		})
		<-ticker.C
	}
}

func (w *world) patchGate(message int, status corev1.ConditionStatus) {
	w.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PodCondition{
		{Type: gate, Status: status, Message: strconv.Itoa(message)},
	}}})
	if err != nil {
		w.Fatal(err)
	}
	_, err = w.pods().Patch(w.Context(), "gated", types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		w.Fatalf("write the gate: %v", err)
	}
}

// follow checks that the gate carries the messages 1 to last in this order, and that no message is lost or taken
// back.
func (w *world) follow(from *corev1.Pod, last int) <-chan error {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	events, err := w.pods().Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", from.Name).String(),
		ResourceVersion: from.ResourceVersion,
	})
	if err != nil {
		w.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		defer cancel()
		defer events.Stop()
		at := 0
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				result <- fmt.Errorf("watch: %v", event.Object)
				return
			}
			now := 0
			if c := condition(pod, gate); c != nil {
				now, _ = strconv.Atoi(c.Message)
			}
			if now != at && now != at+1 {
				result <- fmt.Errorf("the gate went from message %d to %d", at, now)
				return
			}
			if at = now; at == last {
				result <- nil
				return
			}
		}
		result <- fmt.Errorf("the watch ended at message %d of %d: %w", at, last, context.Cause(ctx))
	}()
	return result
}
