// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// image is the image of containers: a server without an end of its own.
const image = "nginx"

// newPod returns a pod for the node, with one container for each name. It
// needs neither a scheduler nor a service account token.
func (s *EndToEndTestSuite) newPod(purpose string, containers ...string) *corev1.Pod {
	noToken := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-" + purpose + "-", Namespace: s.config.Namespace},
		Spec: corev1.PodSpec{
			NodeName:                     s.config.NodeName,
			AutomountServiceAccountToken: &noToken,
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: image})
	}
	return pod
}

// createPod creates pod and removes it, without grace, when the test ends.
func (s *EndToEndTestSuite) createPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	pods := s.newClient(t).CoreV1().Pods(s.config.Namespace)
	created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", pod.GenerateName, err)
	}
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), s.config.WatchTimeout)
		defer cancel()
		err := pods.Delete(ctx, created.Name, *metav1.NewDeleteOptions(0))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("remove pod %s: %v", created.Name, err)
		}
	})
	return created
}

// start creates pod and waits until it runs.
func (s *EndToEndTestSuite) start(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	return s.waitForPod(t, s.createPod(t, pod), "runs, is ready and has an address", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" &&
			slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
	})
}

// waitForPod waits until a pod fulfils done.
func (s *EndToEndTestSuite) waitForPod(t *testing.T, pod *corev1.Pod, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	return waitFor(s, t, expectation[*corev1.Pod]{
		kind:      &corev1.Pod{},
		resource:  "pods",
		namespace: pod.Namespace,
		selector:  fields.OneTermEqualSelector("metadata.name", pod.Name),
		what:      fmt.Sprintf("pod %s %s", pod.Name, what),
		done:      done,
		state: func(last *corev1.Pod) string {
			if last == nil {
				return "there is no such pod"
			}
			return fmt.Sprintf("phase %s, reason %q, message %q, address %q, conditions %s", last.Status.Phase,
				last.Status.Reason, last.Status.Message, last.Status.PodIP, formatConditions(last))
		},
	})
}

func formatConditions(pod *corev1.Pod) string {
	var out []string
	for _, c := range pod.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return strings.Join(out, " ")
}

// waitForEvent waits until an event with the reason is recorded for pod.
func (s *EndToEndTestSuite) waitForEvent(t *testing.T, pod *corev1.Pod, reason string) {
	t.Helper()
	var reasons []string
	waitFor(s, t, expectation[*corev1.Event]{
		kind:      &corev1.Event{},
		resource:  "events",
		namespace: pod.Namespace,
		selector:  fields.Set{"involvedObject.kind": "Pod", "involvedObject.uid": string(pod.UID)}.AsSelector(),
		what:      fmt.Sprintf("pod %s has an event %s", pod.Name, reason),
		done: func(e *corev1.Event) bool {
			reasons = append(reasons, e.Reason)
			return e.Reason == reason
		},
		state: func(*corev1.Event) string { return fmt.Sprintf("events so far: %q", reasons) },
	})
}
