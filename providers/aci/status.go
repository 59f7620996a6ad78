// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	aci "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerinstance/armcontainerinstance/v2"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// The states of groups. A state is in provisioningState until that is Succeeded, and in instanceView.state from
// then on.
const (
	stateAccepted       = "Accepted"
	statePending        = "Pending"
	stateCreating       = "Creating"
	statePreProvisioned = "PreProvisioned"
	stateRepairing      = "Repairing"
	stateUpdating       = "Updating"
	stateRunning        = "Running"
	stateUnhealthy      = "Unhealthy"
	stateNotAccessible  = "NotAccessible"
	stateNotSpecified   = "NotSpecified"
	stateStopping       = "Stopping"
	stateStopped        = "Stopped"
	stateTerminated     = "Terminated"
	stateDeleting       = "Deleting"
	stateSucceeded      = "Succeeded"
	stateFailed         = "Failed"
	stateCanceled       = "Canceled"
)

// Reasons of pods ended by ACI.
const (
	reasonFailed   = "ContainerGroupFailed"
	reasonCanceled = "ContainerGroupCanceled"
	reasonStopped  = "ContainerGroupStopped"
)

// stateOf returns the state of a group.
func stateOf(g *aci.ContainerGroup) string {
	if g.Properties == nil {
		return ""
	}
	if state := value(g.Properties.ProvisioningState); state != stateSucceeded {
		return state
	}
	return value(value(g.Properties.InstanceView).State)
}

// over reports whether nothing of a group in this state runs any more.
func over(state string) bool {
	switch state {
	case stateSucceeded, stateFailed, stateCanceled, stateStopped, stateTerminated:
		return true
	}
	return false
}

// observe turns an answer of ACI at a time into observations of the pod.
func observe(g *aci.ContainerGroup, at time.Time) podstatus.Pod {
	var out podstatus.Pod
	p := g.Properties
	if p == nil {
		return out
	}
	if ip := value(value(p.IPAddress).IP); ip != "" {
		out.IPs = []string{ip}
	}
	name := value(g.Name)
	for _, c := range p.InitContainers {
		if c.Properties != nil && c.Properties.InstanceView != nil {
			v := c.Properties.InstanceView
			out.Containers = append(out.Containers, container(name, value(c.Name), v.CurrentState, v.PreviousState, value(v.RestartCount)))
		}
	}
	for _, c := range p.Containers {
		if c.Properties != nil && c.Properties.InstanceView != nil {
			v := c.Properties.InstanceView
			seen := container(name, value(c.Name), v.CurrentState, v.PreviousState, value(v.RestartCount))
			if seen.State == podstatus.Running && c.Properties.ReadinessProbe != nil {
				seen.Ready = new(ready(v.Events, c.Properties.ReadinessProbe, seen.Run.StartedAt, at))
			}
			out.Containers = append(out.Containers, seen)
		}
	}
	switch state := stateOf(g); state {
	case stateSucceeded:
		out.Ended = true
	case stateStopped, stateTerminated: // stopped by a user, and never started again: the exit codes decide
		out.Ended = true
		out.Reason, out.Message = reasonStopped, "the container group is "+state
	case stateFailed:
		out.Ended, out.Failed = true, true
		if !exited(out.Containers) { // otherwise the exit of a container is the reason
			out.Reason, out.Message = reasonFailed, cmp.Or(lastWarning(p), "ACI says no more")
		}
	case stateCanceled:
		out.Ended, out.Failed = true, true
		out.Reason, out.Message = reasonCanceled, cmp.Or(lastWarning(p), "ACI has canceled the container group")
	case stateUnhealthy, stateNotAccessible:
		out.NotReady()
		out.Message = "the container group is " + state
	case stateAccepted, statePending, stateCreating, statePreProvisioned, stateRepairing, stateUpdating:
		out.Message = lastWarning(p)
	case stateRunning, stateStopping, stateDeleting, stateNotSpecified: // the states of the containers decide
	default: // an unknown state is ignored
	}
	if out.Ended {
		out.EndRunning()
	}
	return out
}

// exited reports whether a container has failed.
func exited(all []podstatus.Container) bool {
	for i := range all {
		if c := &all[i]; c.State == podstatus.Exited && c.Run.ExitCode != nil && *c.Run.ExitCode != 0 {
			return true
		}
	}
	return false
}

// container returns the observation of a container.
func container(group, name string, now, before *aci.ContainerState, restarts int32) podstatus.Container {
	out := podstatus.Container{Name: name, Restarts: restarts}
	id := func(run int32) string { return fmt.Sprintf("aci://%s/%s/%d", group, name, run) }
	if now != nil {
		switch value(now.State) {
		case stateRunning:
			out.State, out.Run = podstatus.Running, podstatus.Run{StartedAt: value(now.StartTime)}
		case stateTerminated, stateSucceeded, stateFailed, stateCanceled, stateStopped:
			out.State, out.Run = podstatus.Exited, run(now)
		default: // Waiting, Pending, Creating, and unknown states
			out.Reason, out.Message = reason(now)
		}
	}
	out.Run.ID = id(restarts)
	if before != nil && before.ExitCode != nil && value(before.State) != "" {
		out.Last = new(run(before))
		out.Last.ID = id(max(restarts, 1) - 1)
	}
	return out
}

// run returns a run that has ended. Without an exit code, the result is unknown.
func run(s *aci.ContainerState) podstatus.Run {
	out := podstatus.Run{StartedAt: value(s.StartTime), FinishedAt: value(s.FinishTime), ExitCode: s.ExitCode}
	if detail := value(s.DetailStatus); strings.Contains(strings.ToLower(detail), "oomkilled") {
		out.Reason = "OOMKilled"
	}
	return out
}

// reason returns why a container waits: a reason of ACI in one word, or its state with a message of ACI.
func reason(s *aci.ContainerState) (reason, message string) {
	detail := azlogin.Line(value(s.DetailStatus))
	if strings.ContainsAny(detail, " :.") {
		return value(s.State), detail
	}
	return detail, ""
}

// lastWarning returns the last warning of ACI about the group or one of its containers.
func lastWarning(p *aci.ContainerGroupPropertiesProperties) string {
	events := slices.Clone(value(p.InstanceView).Events)
	for _, c := range p.Containers {
		events = append(events, value(value(c.Properties).InstanceView).Events...)
	}
	var last *aci.Event
	for _, e := range events {
		if value(e.Type) == "Warning" && (last == nil || value(e.LastTimestamp).After(value(last.LastTimestamp))) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return azlogin.Line(value(last.Name) + ": " + value(last.Message))
}

// ready returns the result of the readiness probe of a container that has run since a time. ACI reports only failures, by an event
// with the time of the last failure. So a container is ready if its probe has run and has not failed for two periods.
func ready(events []*aci.Event, p *aci.ContainerProbe, since, at time.Time) bool {
	or := func(n *int32, or int32) time.Duration { return time.Duration(cmp.Or(value(n), or)) * time.Second }
	round := or(p.PeriodSeconds, 10) + or(p.TimeoutSeconds, 1)
	if at.Sub(since) < or(p.InitialDelaySeconds, 0)+round {
		return false // no probe has run yet
	}
	for _, e := range events {
		message := strings.ToLower(value(e.Message))
		if strings.Contains(message, "readiness probe") && strings.Contains(message, "failed") && at.Sub(value(e.LastTimestamp)) < 2*round {
			return false
		}
	}
	return true
}

// value returns the target of a pointer of the SDK, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
