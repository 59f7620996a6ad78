// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

const (
	// measureEvery is the interval of measurements of pods with a limit on disk usage.
	measureEvery = 10 * time.Second
	// evictionGrace is the grace period of an evicted pod's containers.
	evictionGrace = time.Second
	// critical is the minimum priority of pods that are never evicted.
	critical = eviction.Critical
)

// needsVolumes reports whether the volumes of the pod exist and are still needed.
func (w *worker) needsVolumes() bool {
	return w.full && w.mem.VolumesReady() && !w.mem.Finished() && !w.mem.Deleted() && w.mem.Eviction == nil
}

// refreshVolumes updates the volumes when they are due, and returns the time until the next update.
func (w *worker) refreshVolumes(ctx context.Context, now time.Time) time.Duration {
	if !w.needsVolumes() || len(w.pod.Spec.Volumes) == 0 {
		return idle
	}
	if wait, waits := w.refresh.await(now); waits {
		return wait
	}
	w.refresh.begin()
	pod := w.pod
	w.workers.background.begin(func() {
		again, err := w.exec.volumes.Refresh(ctx, pod)
		if err != nil {
			w.exec.events.recordMounts(pod, err)
		}
		w.mail.putInput(func(in *inbox) { in.refresh = &again })
	})
	return idle
}

// checkUsage checks, when a check is due, whether the pod uses too much of the disk, and returns the time until the next check.
func (w *worker) checkUsage(ctx context.Context, now time.Time) time.Duration {
	if !w.needsVolumes() || !storageLimited(w.pod) || w.pod.Spec.Priority != nil && *w.pod.Spec.Priority >= critical {
		return idle
	}
	if wait, waits := w.measure.await(now); waits {
		return wait
	}
	w.measure.begin()
	pod, sandbox := w.pod, ""
	if s := w.seen.newestSandbox(); s != nil {
		sandbox = s.ID
	}
	w.workers.background.begin(func() {
		message, err := w.workers.limits.exceededLimit(ctx, pod, sandbox)
		if err != nil && ctx.Err() == nil {
			log.G(ctx).WithField("pod", w.id.String()).WithError(err).Warn("find out whether a pod uses more of the disk than it may")
		}
		w.mail.putInput(func(in *inbox) { in.measured = &message })
	})
	return idle
}

// recordUsage records the usage of the volumes.
func (w *worker) recordUsage(exceeded string) {
	w.measure.end(time.Now().Add(measureEvery))
	if exceeded == "" || !w.needsVolumes() {
		return
	}
	grace := evictionGrace
	w.evictPod(plan.Eviction{Reason: "Evicted", Message: exceeded, Grace: &grace})
}

// evictPod ends the pod, unless it is already ending.
func (w *worker) evictPod(why plan.Eviction) {
	if !w.full || w.mem.Finished() || w.mem.Deleted() || w.mem.Eviction != nil {
		return
	}
	w.mem.Eviction = &why
	w.exec.events.recordPod(w.pod, corev1.EventTypeWarning, why.Reason, why.Message)
}

// limitMessages truncates the termination messages of a pod's containers to their common limit.
func limitMessages(s *corev1.PodStatus) {
	lists := [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses}
	count := 0
	for _, list := range lists {
		count += len(list)
	}
	if count == 0 {
		return
	}
	each := maxMessages / count
	for _, list := range lists {
		for i := range list {
			for _, state := range []*corev1.ContainerState{&list[i].State, &list[i].LastTerminationState} {
				if state.Terminated != nil && len(state.Terminated.Message) > each {
					// Other goroutines may read the status that contains the message.
					state.Terminated = state.Terminated.DeepCopy()
					state.Terminated.Message = state.Terminated.Message[:each]
				}
			}
		}
	}
}
