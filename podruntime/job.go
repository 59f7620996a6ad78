// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// callTimeout bounds a call of the runtime, in addition to the waits of the call itself.
const callTimeout = 2 * time.Minute

// Reasons of failed actions. The status shows the reasons of failed actions on containers.
const (
	reasonVolumes      = "FailedMount"
	reasonSandbox      = "FailedCreatePodSandBox"
	reasonStop         = "FailedKillPod"
	reasonRemove       = "FailedRemove"
	reasonHook         = "FailedPreStopHook"
	reasonConfig       = "CreateContainerConfigError"
	reasonCreate       = "CreateContainerError"
	reasonRun          = "RunContainerError"
	reasonPostStart    = "PostStartHookError"
	reasonResize       = "ResizeError"
	eventFailed        = "Failed"
	eventFailedKillPod = "FailedKillPod"
)

// job is one action on its own goroutine, with a copy of the worker's state at the start.
type job struct {
	exec    *executor
	pod     *corev1.Pod // never changed
	sandbox *plan.Sandbox
	target  *containerView // of an action on an instance
	others  []plan.Container
	deleted bool // the pod was deleted, and has ended
}

// newJob makes the job of an action.
func (w *worker) newJob(a plan.Action) job {
	j := job{exec: w.exec, pod: w.pod, others: slices.Clone(w.seen.observed.Containers), deleted: w.mem.Deleted() && w.mem.Finished()}
	for _, s := range w.seen.observed.Sandboxes {
		if a.SandboxID == "" || s.ID == a.SandboxID {
			j.sandbox = &s
		}
	}
	if c := w.seen.containers[a.ID]; c != nil {
		copied := *c
		j.target = &copied
	}
	return j
}

// runAction executes the action.
func (j job) runAction(ctx context.Context, a plan.Action) plan.Outcome {
	switch a.Kind {
	case plan.SetupVolumes:
		return j.setupVolumes(ctx)
	case plan.RunSandbox:
		return j.runSandbox(ctx, a)
	case plan.StopSandbox:
		return j.stopSandbox(ctx, a)
	case plan.Start:
		return j.startContainer(ctx, a)
	case plan.PreStop:
		return j.preStop(ctx, a)
	case plan.Stop:
		return j.stopContainer(ctx, a)
	case plan.Resize:
		return j.resizeContainer(ctx, a)
	case plan.RemoveContainer:
		return j.removeContainer(ctx, a)
	case plan.Finish:
		return j.removeVolumes()
	case plan.RemoveSandbox:
		return j.removeSandbox(ctx, a)
	}
	return plan.Outcome{Reason: "Unknown", Message: "an action of no known kind"}
}

// setupVolumes makes the volumes.
func (j job) setupVolumes(ctx context.Context) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	again, err := j.exec.volumes.Setup(ctx, j.pod)
	if err != nil {
		j.exec.events.recordMounts(j.pod, err)
		return plan.Outcome{Reason: reasonVolumes, Message: err.Error()}
	}
	return plan.Outcome{RetryAfter: again} // to check whether the volumes have changed
}

// preStop runs the hook of a container before the container stops.
func (j job) preStop(ctx context.Context, a plan.Action) plan.Outcome {
	target, ok := j.probeTarget()
	if !ok {
		return plan.Outcome{}
	}
	if _, err := j.exec.prober.PreStop(ctx, target, a.Grace); err != nil {
		// The output of the hook may be secret.
		j.exec.events.recordContainer(j.pod, a.Container, corev1.EventTypeWarning, probe.FailedPreStopHook, probe.PreStopHookMessage)
		return plan.Outcome{Reason: reasonHook, Message: probe.PreStopHookMessage}
	}
	return plan.Outcome{}
}

// stopContainer stops an instance, and returns when it has ended.
func (j job) stopContainer(ctx context.Context, a plan.Action) plan.Outcome {
	if ender, ok := j.exec.runtime.(SandboxEnder); ok && a.Last && j.target != nil {
		ender.EndSandbox(j.target.seen.SandboxID)
	}
	seconds := int64(math.Ceil(a.Grace.Seconds()))
	ctx, cancel := context.WithTimeout(ctx, a.Grace+callTimeout)
	defer cancel()
	return j.removalOutcome(a, reasonStop, j.exec.runtime.StopContainer(ctx, a.ID, seconds))
}

// resizeContainer applies the resources of the spec to a running instance.
func (j job) resizeContainer(ctx context.Context, a plan.Action) plan.Outcome {
	c := containerNamed(j.pod, a.Container)
	if c == nil {
		return plan.Outcome{Reason: reasonResize, Message: "the pod has no such container any more"}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := j.exec.cgroups.resizeGroup(j.pod, func() error {
		return j.exec.runtime.UpdateContainerResources(ctx, a.ID, j.exec.settings.Update(j.pod, c))
	}); err != nil {
		return plan.Outcome{Reason: reasonResize, Message: errorText(err)}
	}
	return plan.Outcome{}
}

// removeContainer removes an instance, its log and its termination message.
func (j job) removeContainer(ctx context.Context, a plan.Action) plan.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if o := j.removalOutcome(a, reasonRemove, j.exec.runtime.RemoveContainer(ctx, a.ID)); o.Reason != "" {
		return o
	}
	j.exec.prober.Forget(a.ID)
	if j.target == nil {
		return plan.Outcome{}
	}
	err := os.Remove(j.exec.messages.file(j.pod.UID, j.target.seen.Name, j.target.seen.Attempt))
	if j.target.log != "" && !(j.deleted && j.exec.keepLogs) {
		err = errors.Join(err, j.exec.logs.Remove(j.target.log))
	}
	_ = err // the container is gone, so there is no retry; the directories are removed with the pod
	return plan.Outcome{}
}

// removeVolumes removes the volumes.
func (j job) removeVolumes() plan.Outcome {
	if err := j.exec.volumes.Remove(j.pod.UID); err != nil {
		return plan.Outcome{Reason: reasonRemove, Message: err.Error()}
	}
	return plan.Outcome{}
}

// removalOutcome returns the outcome of a removal. A missing object counts as removed.
func (j job) removalOutcome(_ plan.Action, reason string, err error) plan.Outcome {
	if err == nil || status.Code(err) == codes.NotFound {
		return plan.Outcome{}
	}
	if reason == reasonStop {
		j.exec.events.recordPod(j.pod, corev1.EventTypeWarning, eventFailedKillPod, "error killing pod: "+errorText(err))
	}
	return plan.Outcome{Reason: reason, Message: errorText(err)}
}

// containerNamed returns the container with that name, of any kind, or nil.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
			return &c
		}
	}
	return nil
}
