// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// watchAgain is the pause before the next request for events.
	watchAgain = 5 * time.Second
	// watchBuffer is the maximum number of buffered events.
	watchBuffer = 256
)

// watchEvents reads the events of the runtime, if it has any, to detect an end at once. Events may be lost, so they only trigger reads, and lists
// continue.
func (l *lister) watchEvents(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.watchOnce(ctx)
		l.events.Store(false)
		if status.Code(err) == codes.Unimplemented {
			return
		}
		log.G(ctx).WithError(err).Debug("the container runtime sends no events now; its lists are read more often")
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
		}
	}
}

func (l *lister) watchOnce(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	events, ended := make(chan *runtimeapi.ContainerEventResponse, watchBuffer), make(chan error, 1)
	if !l.workers.background.begin(func() {
		ended <- l.runtime.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) {})
	}) {
		cancel()
		return ctx.Err()
	}
	for {
		select {
		case e := <-events:
			l.events.Store(true) // the request succeeds even if the runtime sends no events
			l.handleEvent(e)
		case err := <-ended:
			cancel()
			return err
		}
	}
}

// handleEvent makes the worker of a pod read an ended object. The worker itself starts containers, so it ignores starts.
func (l *lister) handleEvent(e *runtimeapi.ContainerEventResponse) {
	kind := e.GetContainerEventType()
	if kind != runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT && kind != runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT {
		return
	}
	if w := l.workers.findWorker(types.UID(e.GetPodSandboxStatus().GetMetadata().GetUid())); w != nil {
		w.mail.putInput(func(in *inbox) { in.touched = append(in.touched, e.GetContainerId()) })
	}
}
