// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// readTimeout bounds the status request for one sandbox or container.
const readTimeout = 30 * time.Second

// readChanges reads all dirty parts of the view. After an error, the known state stays, and the worker must not make decisions.
func (w *worker) readChanges(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if w.seen.observed.Runtime == "" {
		name, err := w.workers.info.identifyRuntime(ctx)
		if err != nil {
			return err
		}
		w.seen.observed.Runtime = name
	}
	for id, s := range w.seen.sandboxes {
		if !s.dirty {
			continue
		}
		answer, err := w.exec.runtime.PodSandboxStatus(ctx, id, false)
		switch {
		case status.Code(err) == codes.NotFound:
			delete(w.seen.sandboxes, id)
		case err != nil:
			return fmt.Errorf("read the sandbox of pod %s: %w", w.id, err)
		default:
			s.dirty, s.seen = false, sandboxOf(answer.Status)
			s.meta = criconfig.Meta{Labels: answer.Status.GetLabels(), Annotations: answer.Status.GetAnnotations()}
		}
	}
	if err := w.observeContainers(ctx); err != nil {
		return err
	}
	w.seen.observed.HostIPs = w.exec.hostIPs()
	w.seen.observed.RecursiveReadOnly = w.workers.info.recursiveReadOnly(w.pod)

	w.seen.assembleInput()
	if w.pod == nil || !w.full {
		w.makeSkeleton()
	}
	return nil
}

func (w *worker) observeContainers(ctx context.Context) error {
	for id, c := range w.seen.containers {
		if !c.dirty {
			continue
		}
		answer, err := w.exec.runtime.ContainerStatus(ctx, id, false)
		switch {
		case status.Code(err) == codes.NotFound:
			delete(w.seen.containers, id)
			w.exec.prober.Forget(id)
			continue
		case err != nil:
			return fmt.Errorf("read a container of pod %s: %w", w.id, err)
		}
		s := answer.Status
		before := c.seen
		c.dirty, c.seen, c.log = false, containerOf(s), s.GetLogPath()
		c.meta = criconfig.Meta{Labels: s.GetLabels(), Annotations: s.GetAnnotations()}
		c.seen.SandboxID = c.sandbox
		if c.seen.State == plan.Exited {
			c.seen.Message = w.terminationMessage(ctx, before, c, s)
		}
	}
	return nil
}

// makeSkeleton makes the pod from its sandbox and containers, until its spec arrives.
func (w *worker) makeSkeleton() {
	var meta *criconfig.Meta
	if s := w.seen.newestSandbox(); s != nil {
		meta = &w.seen.sandboxes[s.ID].meta
	}
	for _, c := range w.seen.containers {
		if meta == nil {
			meta = &criconfig.Meta{Labels: c.meta.Labels}
		}
	}
	if meta == nil {
		return
	}
	pod := criconfig.Skeleton(meta.Labels, meta.Annotations)
	for _, c := range w.seen.observed.Containers {
		m := w.seen.containers[c.ID].meta
		criconfig.Flesh(pod, m.Labels, m.Annotations, c.Image)
	}
	if w.pod != nil {
		pod.Status = w.pod.Status
	}
	w.pod = pod
}
