// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// TestStatus: the test has each state of a machine, with and without a report of its agent.
func TestStatus(t *testing.T) {
	pod := aPod(nil, nil)
	runs := &podjob.Status{Pod: runningStatus(pod)}
	done := &podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodSucceeded}, Ended: true}
	told := &podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodFailed}, Ended: true, Cause: "SIGTERM"}
	for name, c := range map[string]struct {
		i      instance
		phase  corev1.PodPhase
		reason string
		over   bool
	}{
		"starts":                               {instance{Machine: machine.Machine{State: machine.Starting}}, corev1.PodPending, "", false},
		"runs, and nobody answers":             {instance{Machine: machine.Machine{State: machine.Running}}, corev1.PodPending, "", false},
		"is unknown":                           {instance{}, corev1.PodPending, "", false},
		"runs the pod":                         {instance{Machine: machine.Machine{State: machine.Running}, said: runs}, corev1.PodRunning, "", false},
		"stops, and the pod runs":              {instance{Machine: machine.Machine{State: machine.Stopping}, said: runs}, corev1.PodRunning, "", false},
		"is gone":                              {instance{Machine: machine.Machine{State: machine.Gone}, said: runs}, corev1.PodFailed, reasonNodeLost, true},
		"is gone, and the pod had ended":       {instance{Machine: machine.Machine{State: machine.Gone}, said: done}, corev1.PodSucceeded, "", true},
		"runs, and the pod has ended":          {instance{Machine: machine.Machine{State: machine.Running}, said: done}, corev1.PodSucceeded, "", true},
		"is taken away, and the pod runs":      {instance{Machine: machine.Machine{State: machine.Running}, said: runs, taken: "soon"}, corev1.PodRunning, "", false},
		"is taken away, and the pod has ended": {instance{Machine: machine.Machine{State: machine.Running}, said: done, taken: "soon"}, corev1.PodFailed, machine.ReasonPreempted, true},
		"was told to end":                      {instance{Machine: machine.Machine{State: machine.Running}, said: told}, corev1.PodFailed, reasonNodeLost, true},
		"did not start":                        {instance{reason: reasonStart, message: "m"}, corev1.PodFailed, reasonStart, true},
	} {
		s := statusOf(pod, c.i)
		if s.Phase != c.phase || s.Reason != c.reason || ended(c.i) != c.over {
			t.Errorf("%s: got %s %q, ended %t, want %s %q, %t", name, s.Phase, s.Reason, ended(c.i), c.phase, c.reason, c.over)
		}
	}
}

// TestRestartKeepsWhatWasSaid: a pod keeps its running status until the agent answers the new process.
func TestRestartKeepsWhatWasSaid(t *testing.T) {
	pod := aPod(nil, nil)
	pod.Status = runningStatus(pod)
	if s := statusOf(pod, instance{Machine: machine.Machine{State: machine.Running}}); s.Phase != corev1.PodRunning || len(s.ContainerStatuses) != 1 {
		t.Errorf("got %s with %d containers", s.Phase, len(s.ContainerStatuses))
	}
}

// TestContainersOfOthersAreNotBelieved: an agent can report only the containers of its pod.
func TestContainersOfOthersAreNotBelieved(t *testing.T) {
	pod := aPod(nil, nil)
	said := &podjob.Status{Pod: runningStatus(pod)}
	said.Pod.ContainerStatuses = append(said.Pod.ContainerStatuses, corev1.ContainerStatus{Name: "other"})
	s := statusOf(pod, instance{Machine: machine.Machine{State: machine.Running, IP: "10.0.0.7"}, said: said})
	if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].Name != "main" || s.PodIP != "10.0.0.7" {
		t.Errorf("got %d containers, and the address %s", len(s.ContainerStatuses), s.PodIP)
	}
}

// TestAddressOfAPodIsTheCloudsAlone: a machine cannot claim the address of another pod, and get its traffic.
func TestAddressOfAPodIsTheCloudsAlone(t *testing.T) {
	pod := aPod(nil, nil)
	said := &podjob.Status{Pod: runningStatus(pod)}
	said.Pod.PodIP, said.Pod.PodIPs = "10.0.0.9", []corev1.PodIP{{IP: "10.0.0.9"}}
	if s := statusOf(pod, instance{Machine: machine.Machine{State: machine.Running}, said: said}); s.PodIP != "" || len(s.PodIPs) != 0 {
		t.Errorf("while the cloud does not tell the address, it is %q %v", s.PodIP, s.PodIPs)
	}
}
