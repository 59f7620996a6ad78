// SPDX-License-Identifier: Apache-2.0

package apiwatch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
)

// goodLife is the minimum duration of a stream for a quick reopening.
const goodLife = 500 * time.Millisecond

// retryWatch reopens its stream from the last seen version after a break or an end. A reflector alone would list again after a short stream, with
// pauses of up to half a minute.
type retryWatch struct {
	open   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	events chan watch.Event
	cancel context.CancelFunc
}

// ResultChan implements watch.Interface. It is closed when the watch cannot continue; an error event has the
// reason.
func (w *retryWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *retryWatch) Stop() { w.cancel() }

// run ends with ctx, or when the API server no longer knows the version.
func (w *retryWatch) run(ctx context.Context, stream watch.Interface, options metav1.ListOptions) {
	defer close(w.events)
	defer w.cancel()
	pause := sourceFirstPause
	for {
		began := time.Now()
		ended := w.relayEvents(ctx, stream, &options)
		stream.Stop()
		if ended {
			return
		}
		if time.Since(began) >= goodLife {
			pause = sourceFirstPause // the API server answers, so the break of the stream does not matter
		}
		if !sleep.For(ctx, pause) {
			return
		}
		pause = min(2*pause, sourceLastPause)
		var err error
		if stream, err = w.open(ctx, options); err != nil {
			w.sendEvent(ctx, errorEvent(err))
			return
		}
	}
}

// relayEvents relays events until the stream ends, and records its position in options. It reports whether the whole watch has ended.
func (w *retryWatch) relayEvents(ctx context.Context, stream watch.Interface, options *metav1.ListOptions) (ended bool) {
	for {
		select {
		case <-ctx.Done():
			return true
		case event, ok := <-stream.ResultChan():
			switch {
			case !ok:
				return false
			case event.Type == watch.Error && isBroken(apierrors.FromObject(event.Object)):
				return false
			case !w.sendEvent(ctx, event) || event.Type == watch.Error:
				return true
			}
			if m, err := meta.Accessor(event.Object); err == nil {
				options.ResourceVersion = m.GetResourceVersion()
			}
		}
	}
}

// isBroken reports whether an error event means that the stream broke, or that the API server is busy, so the next stream may continue from the same
// version.
func isBroken(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err) || Unanswered(err)
}

func (w *retryWatch) sendEvent(ctx context.Context, event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

func errorEvent(err error) watch.Event {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answer := status.Status()
	return watch.Event{Type: watch.Error, Object: &answer}
}
