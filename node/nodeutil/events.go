// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// eventHub has the broadcaster that sends the events of all recorders, while it runs.
// Making a broadcaster starts goroutines, and NewNode must not.
type eventHub struct {
	current atomic.Pointer[record.EventBroadcaster]
}

// recorder returns a recorder of events from component on a node.
func (h *eventHub) recorder(component, host string) *lateRecorder {
	return &lateRecorder{hub: h, source: corev1.EventSource{Component: component, Host: host}}
}

// run sends events to sink until ctx ends. It returns a function to call, once,
// when ctx has ended: it waits for the broadcaster.
func (h *eventHub) run(ctx context.Context, events corev1client.EventsGetter) (stop func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&eventSink{ctx: ctx, events: events.Events(corev1.NamespaceAll)})
	h.current.Store(&broadcaster)
	return func() {
		h.current.Store(nil)
		broadcaster.Shutdown()
	}
}

// lateRecorder records events only while its hub runs. Before and after, events are
// dropped: the controllers that write them do not run either.
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

// eventSink writes events for as long as its context lives, so that an
// API server that does not answer cannot hold up the end of Run. It keeps the context because
// the interface of the broadcaster passes none.
type eventSink struct {
	ctx    context.Context
	events corev1client.EventInterface
}

// Create writes a new event.
func (s *eventSink) Create(e *corev1.Event) (*corev1.Event, error) {
	return s.events.CreateWithEventNamespaceWithContext(s.ctx, e)
}

// Update replaces an event.
func (s *eventSink) Update(e *corev1.Event) (*corev1.Event, error) {
	return s.events.UpdateWithEventNamespaceWithContext(s.ctx, e)
}

// Patch changes an event.
func (s *eventSink) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.events.PatchWithEventNamespaceWithContext(s.ctx, e, data)
}
