// SPDX-License-Identifier: Apache-2.0

package apiwatch

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// streams simulates an API server whose watches end after one event, or stay open without events.
type streams struct {
	from  []string // the versions of the watches
	first func(*watch.FakeWatcher)
	whole int // number of watches that break; the next one does not break
}

func (s *streams) source() *Source {
	return NewSource(
		func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}, nil
		},
		func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.from = append(s.from, o.ResourceVersion)
			w := watch.NewFakeWithChanSize(2, false)
			version, _ := strconv.Atoi(o.ResourceVersion)
			w.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version + 1)}})
			if len(s.from) <= s.whole {
				s.first(w)
			}
			return w, nil
		},
	)
}

// TestWatchGoesOnWhereItsStreamBroke breaks a stream again and again, in every way it can break.
func TestWatchGoesOnWhereItsStreamBroke(t *testing.T) {
	for name, cut := range map[string]func(*watch.FakeWatcher){
		"end":      func(w *watch.FakeWatcher) { w.Stop() },
		"broken":   func(w *watch.FakeWatcher) { w.Error(statusOf(apierrors.NewInternalError(errors.New("reset")))) },
		"busy":     func(w *watch.FakeWatcher) { w.Error(statusOf(apierrors.NewTooManyRequests("busy", 1))) },
		"stopping": func(w *watch.FakeWatcher) { w.Error(statusOf(apierrors.NewServiceUnavailable("stopping"))) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &streams{first: cut, whole: 20}
				w, err := s.source().WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
				if err != nil {
					t.Fatal(err)
				}
				last := time.Now()
				for want := 2; want <= 22; want++ {
					event := <-w.ResultChan()
					pod, ok := event.Object.(*corev1.Pod)
					if !ok || pod.ResourceVersion != strconv.Itoa(want) {
						t.Fatalf("got %v, want the pod at version %d", event, want)
					}
					if late := time.Since(last); late > sourceLastPause {
						t.Errorf("an event came after %v, want at most %v", late, sourceLastPause)
					}
					last = time.Now()
				}
				w.Stop()
				synctest.Wait()
				if event, open := <-w.ResultChan(); open {
					t.Errorf("after Stop: got %v", event)
				}
			})
		})
	}
}

// TestWatchEndsWhenItsVersionIsGone: the watch ends, so that the reflector lists again.
func TestWatchEndsWhenItsVersionIsGone(t *testing.T) {
	gone := statusOf(apierrors.NewResourceExpired("too old"))
	s := &streams{first: func(w *watch.FakeWatcher) { w.Error(gone) }, whole: 1}
	w, err := s.source().WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	<-w.ResultChan()
	if event := <-w.ResultChan(); event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %v, want the error", event)
	}
	if event, open := <-w.ResultChan(); open {
		t.Errorf("after the error: got %v", event)
	}
}

func statusOf(err *apierrors.StatusError) *metav1.Status { return &err.ErrStatus }
