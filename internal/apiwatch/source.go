// SPDX-License-Identifier: Apache-2.0

package apiwatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// sourceFirstPause and sourceLastPause bound the pauses between requests to an API server that does not
	// answer.
	sourceFirstPause = 250 * time.Millisecond
	sourceLastPause  = 2 * time.Second
)

// Source lists and watches for a reflector, with four additions. Make it with NewSource.
//
// It requests the latest version. One of several API servers may lag behind, and its list may lack running pods.
//
// While the API server does not answer, it retries at least every two seconds. A reflector alone would wait for up to half a minute.
//
// After a broken stream, the watch continues from its last version within the same time. A reflector alone would list again, after the same long
// pauses.
//
// Before a watch continues, Source checks that the API server has reached that version. An API server that was restored from a backup may be behind,
// and would send no events until it reaches that version.
type Source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)

	mu     sync.Mutex
	listed string // guarded by mu; the version of the last list
}

// NewSource returns a source for the objects of the two functions.
func NewSource(list func(context.Context, metav1.ListOptions) (runtime.Object, error), watch func(context.Context, metav1.ListOptions) (watch.Interface, error)) *Source {
	return &Source{list: list, watch: watch}
}

// IsWatchListSemanticsUnSupported keeps a reflector from streaming its list. While the API server refuses connections, the reflector waits up to a
// minute between such attempts, ignores the end of its context, and delays Run.
func (*Source) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists at the latest version.
func (s *Source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	list, err := repeatRequest(ctx, "list", func() (runtime.Object, error) { return s.list(ctx, options) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = versionOf(list)
	return list, nil
}

// WatchWithContext watches from the version in options, and continues by itself after a broken stream.
func (s *Source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.openStream(ctx, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &retryWatch{open: s.openStream, events: make(chan watch.Event), cancel: cancel}
	go w.run(ctx, stream, options)
	return w, nil
}

// openStream opens one stream.
func (s *Source) openStream(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	fresh := options.ResourceVersion == s.listed
	s.mu.Unlock()
	return repeatRequest(ctx, "watch", func() (watch.Interface, error) {
		if !fresh {
			if err := s.checkVersion(ctx, options.ResourceVersion); err != nil {
				return nil, err
			}
		}
		return s.watch(ctx, options)
	})
}

// checkVersion returns an error with the reason Expired if the API server has not reached version. A reflector lists again after that error.
func (s *Source) checkVersion(ctx context.Context, version string) error {
	now, err := s.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(versionOf(now), version)
	if err != nil || order >= 0 { // versions that cannot be compared count as equal
		return nil
	}
	log.G(ctx).Errorf("the API server has gone back from version %s to %s, as after a restore from a backup; listing anew", version, versionOf(now))
	return apierrors.NewResourceExpired("the API server has gone back to version " + versionOf(now))
}

// List is ListWithContext for callers without a context. A reflector does not use it.
func (s *Source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context. A reflector does not use it.
func (s *Source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func versionOf(list runtime.Object) string {
	if m, err := meta.ListAccessor(list); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// repeatRequest repeats a request until the API server answers, or ctx ends.
func repeatRequest[T any](ctx context.Context, what string, request func() (T, error)) (T, error) {
	pause := sourceFirstPause
	for tries := 1; ; tries++ {
		answer, err := request()
		if err == nil || ctx.Err() != nil || !Unanswered(err) && !apierrors.IsTooManyRequests(err) {
			return answer, err
		}
		logger := log.G(ctx).WithError(err)
		if tries == 1 {
			logger.Warnf("the API server does not answer a %s; trying again", what)
		} else {
			logger.Debugf("the API server does not answer a %s", what)
		}
		wait := pause - time.Duration(rand.Int64N(int64(pause)/4))
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, min(time.Duration(seconds)*time.Second, 10*time.Second))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		case <-timer.C:
		}
		pause = min(2*pause, sourceLastPause)
	}
}
