// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// events has the listeners for container events. The zero value has none.
type events struct {
	// guarded by mu
	mu        sync.Mutex
	listeners map[chan *runtimeapi.ContainerEventResponse]bool
}

// GetContainerEvents sends the events of containers until ctx ends. A slow listener with a full queue loses
// events; it has to list the containers to find the changes.
func (r *Runtime) GetContainerEvents(ctx context.Context, out chan *runtimeapi.ContainerEventResponse, connected func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	queue := make(chan *runtimeapi.ContainerEventResponse, 1024)
	r.events.setListener(queue, true)
	defer r.events.setListener(queue, false)
	if connected != nil {
		connected(nil)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-queue:
			select {
			case out <- e:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

func (e *events) setListener(queue chan *runtimeapi.ContainerEventResponse, on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listeners == nil {
		e.listeners = map[chan *runtimeapi.ContainerEventResponse]bool{}
	}
	if !on {
		delete(e.listeners, queue)
		return
	}
	e.listeners[queue] = true
}

// publishEvent sends an event of a container or a sandbox.
func (r *Runtime) publishEvent(id, sandboxID string, kind runtimeapi.ContainerEventType) {
	r.events.mu.Lock()
	listened := len(r.events.listeners) > 0
	r.events.mu.Unlock()
	if !listened {
		return
	}
	event := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	if s, err := r.findSandbox(sandboxID); err == nil {
		event.PodSandboxStatus = r.sandboxStatus(s)
		for _, c := range r.containersOf(sandboxID) {
			if status, err := c.statusMessage(r); err == nil {
				event.ContainersStatuses = append(event.ContainersStatuses, status)
			}
		}
	}
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	for queue := range r.events.listeners {
		select {
		case queue <- event:
		default:
		}
	}
}

// tellNetwork records an event of the pod: why the sandbox has lost its network or, if why is empty, that it has
// a network again.
func (r *Runtime) tellNetwork(s *sandbox, why string) {
	if r.recorder == nil {
		return
	}
	meta := s.config.GetMetadata()
	pod := &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: types.UID(meta.GetUid())}
	if why == "" {
		r.recorder.Event(pod, corev1.EventTypeNormal, "NetworkReady", "the pod has its network again")
		return
	}
	r.recorder.Event(pod, corev1.EventTypeWarning, "NetworkNotReady", "the network process of the node was started again, and the pod has no network until it is attached, which is tried again and again: "+why)
}
