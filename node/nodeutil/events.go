// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// eventHub has the event broadcaster of all recorders while it runs. The broadcaster is not created earlier, because that starts
// goroutines, and NewNode must not start any.
type eventHub struct {
	current atomic.Pointer[record.EventBroadcaster]
}

// recorder returns an event recorder for the component on the host.
func (h *eventHub) recorder(component, host string) *lateRecorder {
	return &lateRecorder{hub: h, source: corev1.EventSource{Component: component, Host: host}}
}

// flushTime is the time that a stopping node waits for its last events.
const flushTime = time.Second

// run sends events until the returned function is called. Call that function once, when ctx has ended: it waits up to flushTime for
// recorded events, and logs unsent events.
func (h *eventHub) run(ctx context.Context, events corev1client.EventsGetter) (stop func()) {
	logger := log.G(ctx)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sink := &eventSink{ctx: ctx, events: events.Events(corev1.NamespaceAll), correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{})}
	broadcaster := record.NewBroadcaster()
	// StartEventWatcher would start a goroutine that cannot be waited for.
	watcher, err := broadcaster.(interface {
		Watch() (watch.Interface, error)
	}).Watch()
	if err != nil {
		logger.WithError(err).Error("no events are sent")
		watcher = watch.NewEmptyWatch()
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for e := range watcher.ResultChan() {
			if event, ok := e.Object.(*corev1.Event); ok {
				sink.send(event)
			}
		}
	}()
	h.current.Store(&broadcaster)
	return func() {
		h.current.Store(nil)
		broadcaster.Shutdown() // the watcher already has all events
		timer := time.AfterFunc(flushTime, cancel)
		<-sent
		timer.Stop()
		cancel()
		sink.tellLost(logger)
	}
}

// lateRecorder records events only while its hub runs. Before and after that, it drops events: the controllers that record events do not
// run then either.
type lateRecorder struct {
	hub    *eventHub
	source corev1.EventSource
}

// Event records an event.
func (r *lateRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.AnnotatedEventf(object, nil, eventtype, reason, "%s", message)
}

// Eventf records an event with a formatted message.
func (r *lateRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.AnnotatedEventf(object, nil, eventtype, reason, messageFmt, args...)
}

// AnnotatedEventf records an event with annotations.
func (r *lateRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	if broadcaster := r.hub.current.Load(); broadcaster != nil {
		recorder := (*broadcaster).NewRecorder(scheme.Scheme, r.source)
		recorder.AnnotatedEventf(object, annotations, eventtype, reason, messageFmt, args...)
	}
}

const (
	// eventTries and eventRetry are the number of attempts to send an event while the API server does not answer, and the pause before each
	// attempt.
	eventTries = 12
	eventRetry = 10 * time.Second
	// lostNames bounds the lost events named in the log.
	lostNames = 5
)

// eventSink writes the events of a broadcaster, one after the other. After the end of ctx it writes nothing more, and records the unwritten
// events. It stores the context because a broadcaster passes none.
type eventSink struct {
	ctx        context.Context
	events     corev1client.EventInterface
	correlator *record.EventCorrelator
	lost       []string // read after the last call of send
	silent     bool     // the API server has not answered; logged once
}

// send sends one event. Calls do not overlap.
func (s *eventSink) send(event *corev1.Event) {
	own := *event // the broadcaster may have other watchers
	result, err := s.correlator.EventCorrelate(&own)
	if err != nil || result.Skip {
		return
	}
	about := own.InvolvedObject
	object := strings.TrimPrefix(about.Namespace+"/"+about.Name, "/") // a node has no namespace
	logger := log.G(s.ctx).WithField(strings.ToLower(about.Kind), object).WithField("reason", own.Reason)
	for tries := 1; ; tries++ {
		written, err := s.write(result)
		var refused *apierrors.StatusError
		var malformed *rest.RequestConstructionError
		switch {
		case err == nil:
			s.silent = false
			s.correlator.UpdateState(written)
			return
		case s.ctx.Err() != nil:
			s.lost = append(s.lost, own.Reason+" of "+object)
			return
		case errors.As(err, &malformed):
			logger.WithError(err).Warn("an event is given up: its request is malformed")
			return
		case errors.As(err, &refused):
			if !apierrors.IsAlreadyExists(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				logger.WithError(err).Warn("the API server refuses an event")
			}
			return
		case tries == eventTries:
			logger.WithError(err).Warn("an event is given up: the API server does not answer")
			return
		}
		if !s.silent {
			s.silent = true
			logger.WithError(err).Warn("events wait: the API server does not answer")
		}
		_ = sleep.For(s.ctx, eventRetry)
	}
}

func (s *eventSink) write(r *record.EventCorrelateResult) (*corev1.Event, error) {
	if r.Event.Count > 1 {
		written, err := s.events.PatchWithEventNamespaceWithContext(s.ctx, r.Event, r.Patch)
		if !apierrors.IsNotFound(err) {
			return written, err
		}
	}
	r.Event.ResourceVersion = ""
	return s.events.CreateWithEventNamespaceWithContext(s.ctx, r.Event)
}

// tellLost logs the unsent events in one line.
func (s *eventSink) tellLost(logger log.Logger) {
	n := len(s.lost)
	if n == 0 {
		return
	}
	names := s.lost[:min(n, lostNames)]
	if n > lostNames {
		names = append(names, "...")
	}
	logger.Warnf("%d events were not sent before the end: %s", n, strings.Join(names, ", "))
}
