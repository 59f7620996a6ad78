// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault50SignalDrainsTheNode sends SIGTERM to the program. Critical pods stop after the others, and the status of each pod has the
// reason of its end.
func TestFault50SignalDrainsTheNode(t *testing.T) {
	t.Parallel()
	const n = 4
	w := newWorld(t)
	c := w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName), "--drain-on-exit", "--drain-timeout=3m", "--drain-critical-timeout=1m")
	for i := range n {
		pod := w.pod(fmt.Sprintf("pod-%d", i))
		pod.Annotations = map[string]string{"mock.virtual-kubelet.io/delete-delay": "2s"}
		if i == 0 {
			pod.Spec.PriorityClassName = "system-node-critical"
		}
		w.create(pod)
	}
	w.awaitRunning(n)

	began := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("virtual-kubelet ended: %v", err)
	}
	c.ended = true
	took := time.Since(began)
	var ends []time.Time
	pods := w.awaitPods("the pods are there", func(pods []*corev1.Pod) bool { return len(pods) == n })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return int(*a.Spec.Priority) - int(*b.Spec.Priority) })
	for _, pod := range pods {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if s := pod.Status; s.Phase != corev1.PodFailed || s.Reason != "Terminated" || i < 0 {
			t.Fatalf("pod %s is %s %q, conditions %v; want Failed, Terminated, DisruptionTarget\n%s", pod.Name, s.Phase, s.Reason, s.Conditions, c.said.Tail())
		}
		ends = append(ends, pod.Status.Conditions[i].LastTransitionTime.Time)
	}
	if critical := ends[n-1]; slices.ContainsFunc(ends, func(end time.Time) bool { return end.After(critical) }) {
		t.Errorf("the critical pod ended at %v, the others at %v", critical, ends[:n-1])
	}
	w.awaitNode("is not ready", func(node *corev1.Node) bool {
		return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && c.Reason == "KubeletNotReady" && c.Message == "node is shutting down"
		})
	})
	faultrow.Record(t, 50, "SIGTERM to the program with --drain-on-exit, 3 pods and a critical one that take 2 s to stop",
		"4 of 4 Failed/Terminated with DisruptionTarget, the critical one last; node NotReady; exit code 0 after %v", took.Round(time.Millisecond))
}
