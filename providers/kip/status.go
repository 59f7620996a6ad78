// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// instance is a snapshot of a pod and its machine.
type instance struct {
	machine.Machine
	pod             identity.Pod
	said            *podjob.Status // nil: the agent has not reported the pod
	unused          bool           // the machine has not received the pod, and never will
	taken           string         // why the cloud takes the machine away; "": it does not
	reason, message string
}

// Reasons of pods that did not end by themselves.
const (
	reasonNodeLost = "NodeLost"
	reasonStart    = "StartTimeout"
	reasonWrong    = "WrongPod"
)

// ended reports whether, according to all reports, no process of the pod runs any longer.
func ended(i instance) bool {
	return i.said != nil && i.said.Ended || i.State == machine.Gone || i.unused || i.reason != ""
}

// statusOf returns the status of a pod from its machine and its agent.
func statusOf(pod *corev1.Pod, i instance) corev1.PodStatus {
	switch {
	case i.said != nil && i.said.Ended:
		s := believed(pod, i)
		switch {
		case i.taken != "":
			s.Phase, s.Reason, s.Message = corev1.PodFailed, machine.ReasonPreempted, "the cloud takes its machine away: "+i.taken
		case i.said.Cause != "" && !i.said.Stopped:
			s.Phase, s.Reason, s.Message = corev1.PodFailed, reasonNodeLost, "its machine was told to end by "+i.said.Cause
		}
		return s
	case i.reason != "" || i.State == machine.Gone:
		reason, message := i.reason, i.message
		if reason == "" {
			reason, message = reasonNodeLost, "its machine has ended"
		}
		return podstatus.Status(pod, podstatus.Pod{
			StartedAt: i.Created, Ended: true, Failed: true, Reason: reason, Message: message, IPs: i.ips(), Containers: pack.CutStatus(lastStatus(pod, i.said), message),
		})
	case i.said != nil:
		return believed(pod, i)
	case pod.Status.Phase == corev1.PodRunning:
		return pod.Status // the status from before a restart of this process, until the agent reports
	}
	s := podstatus.Status(pod, podstatus.Pod{StartedAt: i.Created, IPs: i.ips()})
	switch i.State {
	case machine.Starting:
		s.Message = fmt.Sprintf("machine %s of type %s starts", i.ID, i.Type)
	case machine.Running:
		s.Message = fmt.Sprintf("machine %s of type %s runs, and its agent has not begun the pod yet", i.ID, i.Type)
	default:
		s.Message = fmt.Sprintf("machine %s of type %s stops", i.ID, i.Type)
	}
	return s
}

// ips returns the known addresses of a pod.
func (i instance) ips() []string {
	if i.IP == "" {
		return nil
	}
	return []string{i.IP}
}

// believed returns the agent's status of the pod. The address comes from the cloud, if known. It omits containers that the pod does not have.
func believed(pod *corev1.Pod, i instance) corev1.PodStatus {
	s := *i.said.Pod.DeepCopy()
	s.PodIP, s.PodIPs = i.IP, nil
	if i.IP != "" {
		s.PodIPs = []corev1.PodIP{{IP: i.IP}}
	}
	s.HostIP, s.HostIPs = pod.Status.HostIP, pod.Status.HostIPs
	if len(pod.Spec.Containers) == 0 {
		return s // the cluster does not seem to have the pod
	}
	s.InitContainerStatuses = ofContainers(s.InitContainerStatuses, pod.Spec.InitContainers)
	s.ContainerStatuses = ofContainers(s.ContainerStatuses, pod.Spec.Containers)
	return s
}

func ofContainers(all []corev1.ContainerStatus, of []corev1.Container) []corev1.ContainerStatus {
	return slices.DeleteFunc(all, func(s corev1.ContainerStatus) bool {
		return !slices.ContainsFunc(of, func(c corev1.Container) bool { return c.Name == s.Name })
	})
}

// lastStatus returns the newest known status of a pod.
func lastStatus(pod *corev1.Pod, said *podjob.Status) corev1.PodStatus {
	if said == nil {
		return pod.Status
	}
	return said.Pod
}
