// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/pack"
)

// instance is the known state of a pod at one time.
type instance struct {
	id        identity
	job       queued
	said      *podjob.Status // nil: the job has written no status
	unsettled bool           // the job is over, and its last status may still appear
}

// ended maps the states of ended jobs to the reason of a pod that had not ended by itself.
var ended = map[string]string{
	"COMPLETED": "JobEnded", "FAILED": "JobFailed", "CANCELLED": "JobCancelled", "TIMEOUT": "DeadlineExceeded", "DEADLINE": "DeadlineExceeded",
	"NODE_FAIL": "NodeFail", "BOOT_FAIL": "BootFail", "PREEMPTED": "Preempted", "OUT_OF_MEMORY": "OutOfMemory", "REVOKED": "JobRevoked",
	stateLost: "JobLost",
}

// stateLost is the state of a job that Slurm no longer knows, and that did not write the end of its pod.
const stateLost = "LOST"

// statusOf returns the status of a pod from its job and from the last status that the job wrote. said is nil if there is none.
func statusOf(pod *corev1.Pod, q queued, said *podjob.Status) corev1.PodStatus {
	reason, over := ended[q.State]
	switch {
	case said != nil && said.Cause != "" && !over:
		s := *said.Pod.DeepCopy()
		s.Phase = corev1.PodRunning // Slurm ends the job, and has not reported the reason yet
		return s
	case said != nil && said.Ended && said.Cause == "":
		return said.Pod
	case said != nil && said.Ended:
		s := *said.Pod.DeepCopy() // Slurm ended the job, and the containers reported their ends
		if s.Phase == corev1.PodFailed || q.State != "COMPLETED" {
			s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, message(q)
		}
		return s
	case over:
		return podstatus.Status(pod, podstatus.Pod{
			StartedAt: q.Submitted, Ended: true, Failed: true, Reason: reason, Message: message(q),
			IPs: addresses(said, false), HostIPs: addresses(said, true), Containers: pack.Cut(said, message(q)),
		})
	case said != nil:
		return said.Pod
	}
	s := podstatus.Status(pod, podstatus.Pod{StartedAt: q.Submitted})
	if q.State != "" {
		s.Message = message(q)
	}
	return s
}

func message(q queued) string {
	if q.State == stateLost {
		return fmt.Sprintf("Slurm does not know job %d any more, and how it ended is not known", q.ID)
	}
	text := fmt.Sprintf("job %d of Slurm is %s", q.ID, q.State)
	if q.Reason != "" && q.Reason != "None" {
		text += ": " + q.Reason
	}
	return text
}

func addresses(said *podjob.Status, host bool) (all []string) {
	switch {
	case said == nil:
	case host && said.Pod.HostIP != "":
		all = append(all, said.Pod.HostIP)
	case !host && said.Pod.PodIP != "":
		all = append(all, said.Pod.PodIP)
	}
	return all
}
