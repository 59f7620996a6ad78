// SPDX-License-Identifier: Apache-2.0

package pack

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Cut returns the containers of a pod without a last status, from the status before. message is for the running
// containers.
func Cut(said *podjob.Status, message string) (all []podstatus.Container) {
	if said == nil {
		return nil // none of them ran, as far as is known
	}
	for _, s := range append(append([]corev1.ContainerStatus{}, said.Pod.InitContainerStatuses...), said.Pod.ContainerStatuses...) {
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
