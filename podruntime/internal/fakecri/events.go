// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// watcher is one stream of events. The queue is unbounded, so no sender waits for a slow reader.
type watcher struct {
	queue []*runtimeapi.ContainerEventResponse // guarded by Runtime.mu
	more  chan struct{}                        // has room for one value
}

// sendEvent sends an event to the watchers. The caller holds r.mu.
func (r *Runtime) sendEvent(s *sandbox, id string, kind runtimeapi.ContainerEventType) {
	if len(r.watchers) == 0 {
		return
	}
	event := &runtimeapi.ContainerEventResponse{
		ContainerId: id, ContainerEventType: kind, CreatedAt: nowNanos(), PodSandboxStatus: s.statusMessage(), ContainersStatuses: r.statusesIn(s),
	}
	for w := range r.watchers {
		w.queue = append(w.queue, cloneMessage(event))
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

// GetContainerEvents sends new events until the context ends or the runtime restarts. The callback gets no
// stream.
func (c *Client) GetContainerEvents(ctx context.Context, events chan *runtimeapi.ContainerEventResponse, established func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	return c.runAction(ctx, "GetContainerEvents", "", func() error {
		r := c.runtime
		if r.config.NoEvents {
			return unimplementedError()
		}
		w := &watcher{more: make(chan struct{}, 1)}
		r.mu.Lock()
		r.watchers[w] = true
		restarted := r.restarted
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.watchers, w)
		}()
		if established != nil {
			established(nil)
		}
		for {
			if err := awaitDone(ctx, w.more, restarted); err != nil {
				return err
			}
			for _, event := range r.takeEvents(w) {
				select {
				case events <- event:
				case <-ctx.Done():
					return statusOf(ctx.Err())
				case <-restarted:
					return status.Error(codes.Unavailable, "the runtime has ended")
				}
			}
		}
	})
}

func (r *Runtime) takeEvents(w *watcher) []*runtimeapi.ContainerEventResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue
}

// DropEvents drops unread events, as a runtime under load may.
func (r *Runtime) DropEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.watchers {
		w.queue = nil
	}
}
