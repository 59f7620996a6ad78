// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// follow records the events of the API server until the test ends.
func (w *world) follow() {
	w.Helper()
	list, err := w.pods().List(w.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.watch(ctx, list.ResourceVersion) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the history of the API server has a gap: %v", err)
		}
	})
}

// watch resumes where the last watch ended, so that no event is missed.
func (w *world) watch(ctx context.Context, version string) error {
	for ctx.Err() == nil {
		events, err := w.pods().Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err == nil {
			version, err = w.take(events, version)
		}
		if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
			return err
		}
		if err != nil {
			pass(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// take records the events of one watch, and returns the version of the last event.
func (w *world) take(events watch.Interface, version string) (string, error) {
	defer events.Stop()
	for e := range events.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return version, apierrors.FromObject(e.Object)
		}
		version = pod.ResourceVersion
		if e.Type == watch.Bookmark {
			continue
		}
		w.records.event(e.Type, pod)
		if e.Type == watch.Deleted {
			w.backend.Forget(pod.Namespace, pod.Name, pod.UID)
		}
	}
	return version, nil
}

// pass waits for the time d. It returns false if ctx ends before.
func pass(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
