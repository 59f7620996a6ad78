// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// TestPodLifecycleGracefulDelete checks that a deleted pod is first marked, with a grace period, and then leaves
// the provider and the API server.
func (s *EndToEndTestSuite) TestPodLifecycleGracefulDelete(t *testing.T) {
	pod := s.startAtProvider(t, "graceful")
	if grace := s.deleteAndWatch(t, pod, metav1.DeleteOptions{}); grace <= 0 {
		t.Errorf("pod %s was removed without a grace period", pod.Name)
	}
	s.awaitCheck(t, "the provider no longer has the pod", func(ctx context.Context) error {
		return s.checkRuns(ctx, pod, false)
	})
}

// TestPodLifecycleForceDelete checks that a pod deleted without grace leaves the provider too, although it
// leaves the API server at once.
func (s *EndToEndTestSuite) TestPodLifecycleForceDelete(t *testing.T) {
	pod := s.startAtProvider(t, "force")
	s.deleteAndWatch(t, pod, *metav1.NewDeleteOptions(0))
	s.awaitCheck(t, "the provider no longer has the pod", func(ctx context.Context) error {
		return s.checkRuns(ctx, pod, false)
	})
}

// startAtProvider starts a pod and looks for it in the provider's list.
func (s *EndToEndTestSuite) startAtProvider(t *testing.T, purpose string) *corev1.Pod {
	t.Helper()
	pod := s.start(t, s.newPod(purpose, "one"))
	s.awaitCheck(t, "the provider has the pod", func(ctx context.Context) error { return s.checkRuns(ctx, pod, true) })
	return pod
}

// deleteAndWatch deletes pod and waits until it left the API server. It returns the longest seen grace period of
// the pod, in seconds.
func (s *EndToEndTestSuite) deleteAndWatch(t *testing.T, pod *corev1.Pod, options metav1.DeleteOptions) (grace int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.config.WatchTimeout)
	defer cancel()
	pods := s.newClient(t).CoreV1().Pods(pod.Namespace)
	// The watch begins at the known version of the pod, so that no step is missed.
	w, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
		ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		t.Fatalf("watch pod %s: %v", pod.Name, err)
	}
	defer w.Stop()
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := pods.Delete(ctx, pod.Name, options); err != nil {
		t.Fatalf("delete pod %s: %v", pod.Name, err)
	}
	last := "no event"
	for event := range w.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("watch pod %s: %v", pod.Name, event.Object)
		}
		if p.DeletionTimestamp != nil && p.DeletionGracePeriodSeconds != nil {
			grace = max(grace, *p.DeletionGracePeriodSeconds)
		}
		if event.Type == watch.Deleted {
			return grace
		}
		last = fmt.Sprintf("phase %s, deletion timestamp %v", p.Status.Phase, p.DeletionTimestamp)
	}
	t.Fatalf("wait until pod %s is removed: the watch ended (%v); at last: %s", pod.Name, ctx.Err(), last)
	return 0
}
