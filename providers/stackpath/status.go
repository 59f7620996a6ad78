// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Responses of the service: see mapping.go for the source. The decoder ignores the case of names.

type workload struct {
	ID, Status string
	Metadata   struct {
		Labels                       map[string]string
		CreatedAt, DeleteRequestedAt string
	}
}

// seen is a workload with the last known state of its instance, or with nil if it has no instance.
type seen struct {
	workload
	pod      identity.Pod
	instance *instance
}

type instance struct {
	ID, Name, Phase, Reason, Message         string
	IPAddress, IPv6Address, CreatedAt        string
	InitContainerStatuses, ContainerStatuses []containerStatus
}

type containerStatus struct {
	Name, ContainerID string
	Ready             bool
	RestartCount      int32
	Waiting           *struct{ Reason, Message string }
	Running           *struct{ StartedAt string }
	Terminated        *struct {
		ExitCode                               *int32
		Reason, Message, StartedAt, FinishedAt string
	}
}

// isGone reports whether a deleted workload has completely ended, although lists still contain it.
func (s seen) isGone() bool {
	return s.Status == "INACTIVE" && s.Metadata.DeleteRequestedAt != "" && s.instance == nil
}

// hasEnded reports whether all containers of a deleted workload have ended.
func (s seen) hasEnded() bool {
	return s.Metadata.DeleteRequestedAt != "" && s.instance != nil && len(s.instance.ContainerStatuses) > 0 &&
		!slices.ContainsFunc(s.instance.ContainerStatuses, func(c containerStatus) bool { return c.Terminated == nil })
}

// isSettled reports whether all containers of an instance run and are ready, so that no change is expected.
func (i *instance) isSettled() bool {
	return i != nil && i.Phase == "RUNNING" && len(i.ContainerStatuses) > 0 &&
		!slices.ContainsFunc(i.ContainerStatuses, func(c containerStatus) bool { return c.Running == nil || !c.Ready })
}

// observePod converts a response of the service to observations of the pod. The containers determine the state. The phases of the instance and the
// workload only go into messages, because it is not documented which phases are final.
func observePod(pod *corev1.Pod, s seen) podstatus.Pod {
	out := podstatus.Pod{StartedAt: podstatus.ParseTime(s.Metadata.CreatedAt)}
	if status := s.Status; status != "" && status != "ACTIVE" {
		out.Reason, out.Message = status, "the status of the workload is "+status
	}
	i := s.instance
	if i == nil {
		return out
	}
	out.IPs = slices.DeleteFunc([]string{i.IPAddress, i.IPv6Address}, func(ip string) bool { return ip == "" })
	if i.Phase != "RUNNING" && i.Phase != "STARTING" {
		out.Reason, out.Message = cmp.Or(i.Reason, out.Reason, i.Phase), cmp.Or(i.Message, out.Message)
	}
	out.Ended = s.hasEnded() // no container is started again
	for _, status := range slices.Concat(i.InitContainerStatuses, i.ContainerStatuses) {
		c := status.observeContainer(i)
		c.Remember(service.StateOf(pod, c.Name))
		out.Containers = append(out.Containers, c)
	}
	return out
}

func (c *containerStatus) observeContainer(i *instance) podstatus.Container {
	out := podstatus.Container{Name: c.Name, Restarts: c.RestartCount, Ready: &c.Ready}
	out.Run.ID = "stackpath://" + cmp.Or(c.ContainerID, i.ID+"/"+c.Name+"/"+strconv.Itoa(int(c.RestartCount)))
	switch t := c.Terminated; {
	case c.Running != nil:
		out.State, out.Run.StartedAt = podstatus.Running, podstatus.ParseTime(c.Running.StartedAt)
	case t != nil:
		out.State = podstatus.Exited
		out.Run.StartedAt, out.Run.FinishedAt, out.Run.ExitCode, out.Run.Reason, out.Run.Message = podstatus.ParseTime(t.StartedAt), podstatus.ParseTime(t.FinishedAt), t.ExitCode, t.Reason, t.Message
		if t.ExitCode == nil && t.Reason == "Completed" {
			out.Run.ExitCode = new(int32(0)) // protocol buffers omit zeros in JSON
		}
	case c.Waiting != nil:
		out.Reason, out.Message = c.Waiting.Reason, c.Waiting.Message
	}
	return out
}
