// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// seen is Nomad's report about a pod.
type seen struct {
	submitted time.Time
	// alloc is the first allocation of the job, which is the pod; nil if there is none. moved is true if Nomad
	// made another one.
	alloc *nomadapi.Allocation
	moved bool
	// lost is true if the client was away for too long, whatever happened to the allocation since.
	lost bool
	// halted is true if others stopped the job.
	halted bool
	// blocked is the evaluation that found no place, or nil.
	blocked *nomadapi.Evaluation
	hostIP  string
}

// instance is the known state of a pod at one time.
type instance struct {
	pod   identity.Pod
	jobID string
	seen
}

// Reasons of pods.
const (
	reasonUnschedulable = "Unschedulable"
	reasonNodeLost      = "NodeLost"
	reasonPreempted     = "Preempted"
	reasonMoved         = "Evicted"
	reasonStopped       = "Stopped"
)

// observe converts Nomad's report into an observation of the pod.
func observe(pod *corev1.Pod, s seen) podstatus.Pod {
	out := podstatus.Pod{StartedAt: s.submitted}
	a := s.alloc
	if a == nil {
		switch {
		case s.halted:
			out.Ended, out.Failed, out.Reason, out.Message = true, true, reasonStopped, "the job of the pod was stopped before Nomad had a place for it"
		case s.blocked != nil:
			out.Reason, out.Message = reasonUnschedulable, whyBlocked(s.blocked)
		}
		return out
	}
	if s.hostIP != "" {
		out.HostIPs = []string{s.hostIP}
	}
	switch {
	case a.NetworkStatus != nil && a.NetworkStatus.Address != "" && !pod.Spec.HostNetwork:
		out.IPs = []string{a.NetworkStatus.Address}
	case pod.Spec.HostNetwork && s.hostIP != "":
		out.IPs = []string{s.hostIP}
	}
	var before time.Time // when the init container before ended
	waits := false       // for an init container
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		k := container(a, c.Name)
		switch {
		case waits && k.State == podstatus.Running: // a waiting task runs a shell
			k = podstatus.Container{Name: c.Name}
		case !k.Run.StartedAt.IsZero() && k.Run.StartedAt.Before(before):
			k.Run.StartedAt = before
		}
		if !podspec.IsSidecar(c) {
			before, waits = k.Run.FinishedAt, waits || !(k.State == podstatus.Exited && k.Run.ExitCode != nil && *k.Run.ExitCode == 0)
		}
		out.Containers = append(out.Containers, k)
	}
	for i := range pod.Spec.Containers {
		out.Containers = append(out.Containers, container(a, pod.Spec.Containers[i].Name))
	}
	allocation(&out, a, s.moved, s.lost)
	return out
}

// allocation adds the state of the allocation itself to out.
func allocation(out *podstatus.Pod, a *nomadapi.Allocation, moved, lost bool) {
	status, why := a.ClientStatus, a.ClientDescription
	if lost {
		status, why = nomadapi.AllocClientStatusLost, "it was away for too long"
	}
	switch status {
	case nomadapi.AllocClientStatusComplete, nomadapi.AllocClientStatusFailed:
		out.Ended = true
		out.Failed = a.ClientStatus == nomadapi.AllocClientStatusFailed
		if out.Failed {
			out.Message = cmp.Or(whyFailed(a), a.ClientDescription)
		}
	case nomadapi.AllocClientStatusLost:
		out.Failed, out.Reason, out.Message = true, reasonNodeLost, fmt.Sprintf("the client %s is lost: %s", a.NodeName, why)
		out.EndRunning()
	case nomadapi.AllocClientStatusUnknown:
		out.Reason, out.Message = reasonNodeLost, fmt.Sprintf("the client %s is disconnected", a.NodeName)
		out.NotReady()
	}
	switch {
	case !out.Ended || out.Reason != "":
	case a.PreemptedByAllocation != "":
		out.Failed, out.Reason, out.Message = true, reasonPreempted, "Nomad gave the place of this pod to a job of higher priority"
	case moved || a.DesiredStatus == nomadapi.AllocDesiredStatusEvict:
		out.Failed, out.Reason, out.Message = true, reasonMoved, cmp.Or(a.DesiredDescription, "Nomad replaced the allocation of this pod")
	}
}

// container returns the observation of a task.
func container(a *nomadapi.Allocation, name string) podstatus.Container {
	k := podstatus.Container{Name: name}
	s := a.TaskStates[name]
	if s == nil {
		return k
	}
	k.Restarts = int32(s.Restarts)
	id := func(run uint64) string { return fmt.Sprintf("nomad://%s/%s/%d", a.ID, name, run) }
	runs := runsOf(s.Events)
	switch s.State {
	case "running":
		k.State, k.Run = podstatus.Running, podstatus.Run{ID: id(s.Restarts), StartedAt: s.StartedAt}
		if len(runs) > 0 && s.Restarts > 0 {
			k.Last = &runs[len(runs)-1]
			k.Last.ID = id(s.Restarts - 1)
		}
	case "dead":
		if len(runs) == 0 { // the task never ran
			reason, text := waiting(s.Events)
			if s.Failed && reason == driverFailed { // Nomad does not try again, for example without the command: a kubelet shows an end
				code := int32(128)
				k.State = podstatus.Exited
				k.Run = podstatus.Run{ID: id(s.Restarts), FinishedAt: s.FinishedAt, ExitCode: &code, Reason: "StartError", Message: text}
				return k
			}
			k.Reason, k.Message = reason, text
			if s.Failed && k.Reason == "" {
				k.Reason = driverFailed
			}
			return k
		}
		k.State, k.Run = podstatus.Exited, runs[len(runs)-1]
		k.Run.ID = id(s.Restarts)
		if k.Run.FinishedAt.IsZero() {
			k.Run.FinishedAt = s.FinishedAt
		}
		if len(runs) > 1 && s.Restarts > 0 {
			k.Last = &runs[len(runs)-2]
			k.Last.ID = id(s.Restarts - 1)
		}
	default: // pending
		k.Reason, k.Message = waiting(s.Events)
		if len(runs) > 0 {
			k.Last = &runs[len(runs)-1]
			k.Last.ID = id(max(s.Restarts, 1) - 1)
		}
	}
	return k
}

// runsOf returns the ended runs of a task that Nomad remembers: it keeps ten events.
func runsOf(events []*nomadapi.TaskEvent) (runs []podstatus.Run) {
	var started time.Time
	for _, e := range events {
		switch e.Type {
		case nomadapi.TaskStarted:
			started = time.Unix(0, e.Time)
		case nomadapi.TaskTerminated:
			r := podstatus.Run{StartedAt: started, FinishedAt: time.Unix(0, e.Time), Message: e.Details["exit_message"]}
			code, err := strconv.ParseInt(e.Details["exit_code"], 10, 32)
			signal, _ := strconv.Atoi(e.Details["signal"])
			if err == nil {
				exit := int32(code)
				if exit == 0 && signal > 0 {
					exit = int32(128 + signal)
				}
				r.ExitCode = &exit
			}
			if e.Details["oom_killed"] == "true" {
				r.Reason = "OOMKilled"
				if r.ExitCode == nil || *r.ExitCode == 0 {
					killed := int32(137)
					r.ExitCode = &killed
				}
			}
			runs = append(runs, r)
			started = time.Time{}
		}
	}
	return runs
}

// driverFailed is the reason of a container that its driver could not start.
const driverFailed = "CreateContainerError"

// waiting returns why a task does not run, from its last event with a reason.
func waiting(events []*nomadapi.TaskEvent) (reason, message string) {
	for _, e := range slices.Backward(events) {
		text := cmp.Or(e.DisplayMessage, e.Message, e.DriverError, e.SetupError, e.ValidationError)
		switch e.Type {
		case nomadapi.TaskDriverFailure:
			if low := strings.ToLower(text); strings.Contains(low, "pull") || strings.Contains(low, "image") {
				return "ErrImagePull", text
			}
			return driverFailed, text
		case nomadapi.TaskSetupFailure, nomadapi.TaskFailedValidation, nomadapi.TaskArtifactDownloadFailed, nomadapi.TaskDownloadingArtifacts:
			return "CreateContainerConfigError", text
		case nomadapi.TaskTerminated:
			return "CrashLoopBackOff", fmt.Sprintf("the driver starts the container again; it ended: %s", text)
		case nomadapi.TaskDriverMessage, "Template":
			return "", text
		case nomadapi.TaskKilling, nomadapi.TaskKilled, nomadapi.TaskSiblingFailed:
			if reason == "" {
				message = text
			}
		}
	}
	return reason, message
}

// whyFailed names the task that failed the allocation, in Nomad's words.
func whyFailed(a *nomadapi.Allocation) string {
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		s := a.TaskStates[name]
		if !s.Failed {
			continue
		}
		if reason, text := waiting(s.Events); len(runsOf(s.Events)) == 0 && reason != "" {
			return name + ": " + text
		}
	}
	return ""
}

// whyBlocked returns why there is no place, with Nomad's counts.
func whyBlocked(e *nomadapi.Evaluation) string {
	m := e.FailedTGAllocs[group]
	if m == nil {
		return cmp.Or(e.StatusDescription, "Nomad has no place for the pod")
	}
	var why []string
	available := 0
	for _, n := range m.NodesAvailable {
		available += n
	}
	if m.NodesEvaluated == 0 && available == 0 {
		why = append(why, "no client is ready and eligible in the datacenters and the node pool of the pod")
	}
	counts := func(what string, of map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			why = append(why, fmt.Sprintf("%d clients %s %s", of[name], what, name))
		}
	}
	counts("are filtered by", m.ConstraintFiltered)
	counts("are exhausted:", m.DimensionExhausted)
	for _, q := range m.QuotaExhausted {
		why = append(why, "the quota is exhausted: "+q)
	}
	if len(why) == 0 {
		why = append(why, fmt.Sprintf("%d clients evaluated, %d filtered, %d exhausted", m.NodesEvaluated, m.NodesFiltered, m.NodesExhausted))
	}
	return "Nomad has no place for the pod: " + strings.Join(why, ", ")
}
