// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Cut is CutStatus for the last status that the job wrote. A nil status has no containers, because no container is known to have run.
func Cut(said *podjob.Status, message string) []podstatus.Container {
	if said == nil {
		return nil
	}
	return CutStatus(said.Pod, message)
}

// CutStatus returns the containers of a pod that ended without a final status, from its last status. message is for the running
// containers.
func CutStatus(last corev1.PodStatus, message string) (all []podstatus.Container) {
	for _, s := range slices.Concat(last.InitContainerStatuses, last.ContainerStatuses) {
		c := podstatus.Container{Name: s.Name, Restarts: s.RestartCount, Image: s.Image, ImageID: s.ImageID, Last: runOf(s.LastTerminationState.Terminated)}
		switch {
		case s.State.Terminated != nil:
			c.State, c.Run = podstatus.Exited, *runOf(s.State.Terminated)
		case s.State.Running != nil:
			c.State, c.Run = podstatus.Exited, podstatus.Run{ID: s.ContainerID, StartedAt: s.State.Running.StartedAt.Time, Message: message}
		}
		all = append(all, c)
	}
	return all
}

func runOf(t *corev1.ContainerStateTerminated) *podstatus.Run {
	if t == nil {
		return nil
	}
	return &podstatus.Run{
		ID: t.ContainerID, StartedAt: t.StartedAt.Time, FinishedAt: t.FinishedAt.Time, ExitCode: new(t.ExitCode), Reason: t.Reason, Message: t.Message,
	}
}
