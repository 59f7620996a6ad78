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
	// sourceFirstPause and sourceLastPause are the pauses between tries to reach an
	// API server that does not answer.
	sourceFirstPause = 250 * time.Millisecond
	sourceLastPause  = 2 * time.Second
)

// Source is what a reflector lists and watches, with four additions. Make one with
// NewSource.
//
// It asks for the latest version: an API server that lags behind, of several,
// would show a past in which pods that run did not exist yet.
//
// While the API server does not answer it tries again every two seconds at most. A
// reflector would wait for up to half a minute, with the API server back long since.
//
// A watch whose stream breaks goes on from there within the same time. A reflector
// would list anew after a stream that breaks soon, with the same pauses.
//
// Before it watches on from where a watch has ended, it sees that the API server
// has come that far: one that was restored from a backup has not, and would
// tell nothing until it has.
type Source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)

	mu     sync.Mutex
	listed string // guarded by mu; the version of the last list
}

// NewSource returns a source of what the two functions list and watch.
func NewSource(list func(context.Context, metav1.ListOptions) (runtime.Object, error), watch func(context.Context, metav1.ListOptions) (watch.Interface, error)) *Source {
	return &Source{list: list, watch: watch}
}

// IsWatchListSemanticsUnSupported keeps a reflector from asking for its list as a stream.
// While the API server refuses connections, the reflector waits between such attempts for
// up to a minute without looking at its context, and Run would wait with it.
func (*Source) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists at the latest version.
func (s *Source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	list, err := persist(ctx, "list", func() (runtime.Object, error) { return s.list(ctx, options) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = versionOf(list)
	return list, nil
}

// WatchWithContext watches from the version in options on, and goes on by itself when the
// stream breaks.
func (s *Source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.open(ctx, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &retryWatch{open: s.open, events: make(chan watch.Event), cancel: cancel}
	go w.run(ctx, stream, options)
	return w, nil
}

// open opens one stream.
func (s *Source) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	fresh := options.ResourceVersion == s.listed
	s.mu.Unlock()
	return persist(ctx, "watch", func() (watch.Interface, error) {
		if !fresh {
			if err := s.reached(ctx, options.ResourceVersion); err != nil {
				return nil, err
			}
		}
		return s.watch(ctx, options)
	})
}

// reached returns an error of the reason Expired, after which a reflector
// lists anew, when the API server has not come as far as version.
func (s *Source) reached(ctx context.Context, version string) error {
	now, err := s.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(versionOf(now), version)
	if err != nil || order >= 0 { // not comparable: as it always was
		return nil
	}
	log.G(ctx).Errorf("the API server has gone back from version %s to %s, as one that was restored from a backup does; listing anew", version, versionOf(now))
	return apierrors.NewResourceExpired("the API server has gone back to version " + versionOf(now))
}

// List is ListWithContext for callers without a context; a reflector is none.
func (s *Source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context; a reflector is none.
func (s *Source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func versionOf(list runtime.Object) string {
	if m, err := meta.ListAccessor(list); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// persist makes a request until it is answered, whatever the answer is, or ctx ends.
func persist[T any](ctx context.Context, what string, request func() (T, error)) (T, error) {
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
