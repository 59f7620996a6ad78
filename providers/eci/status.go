// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// The states of groups.
const (
	stateScheduling     = "Scheduling"
	stateScheduleFailed = "ScheduleFailed"
	statePending        = "Pending"
	stateRunning        = "Running"
	stateSucceeded      = "Succeeded"
	stateFailed         = "Failed"
	stateRestarting     = "Restarting"
	stateUpdating       = "Updating"
	stateTerminating    = "Terminating"
	stateExpired        = "Expired"
)

// Reasons of pods ended by ECI.
const (
	reasonScheduleFailed = "ScheduleFailed"
	reasonExpired        = "Expired"
)

// seen is the answer of ECI about a group. details has the states of its init containers; nil means that they
// were not requested.
type seen struct {
	status  groupStatus
	details *group
}

// observe turns an answer of ECI into observations of the pod.
func observe(s seen) podstatus.Pod {
	g := &s.status
	out := podstatus.Pod{StartedAt: podstatus.ParseTime(g.PodStatus.StartTime)}
	if ip := g.PodStatus.HostIP; ip != "" {
		out.HostIPs = []string{ip}
	}
	for _, ip := range g.PodStatus.PodIPs {
		if ip.IP != "" {
			out.IPs = append(out.IPs, ip.IP)
		}
	}
	if len(out.IPs) == 0 && g.PodStatus.PodIP != "" {
		out.IPs = []string{g.PodStatus.PodIP}
	}
	if s.details != nil {
		for i := range s.details.InitContainers {
			out.Containers = append(out.Containers, s.details.InitContainers[i].observe(g.ContainerGroupID))
		}
	}
	for i := range g.PodStatus.ContainerStatuses {
		out.Containers = append(out.Containers, g.PodStatus.ContainerStatuses[i].observe(g.ContainerGroupID))
	}
	switch g.Status {
	case stateScheduling, statePending:
		out.Reason, out.Message = g.unmet()
	case stateSucceeded:
		out.Ended = true
	case stateFailed:
		out.Ended, out.Failed = true, true
		out.Reason, out.Message = g.unmet()
	case stateScheduleFailed:
		out.Ended, out.Failed = true, true
		_, message := g.unmet()
		out.Reason, out.Message = reasonScheduleFailed, cmp.Or(message, "ECI found no place for the group")
	case stateExpired:
		out.Ended, out.Failed = true, true
		out.Reason, out.Message = reasonExpired, "ECI has taken the group back: its price or its time was over"
	case stateRunning, stateRestarting, stateUpdating, stateTerminating: // the states of the containers decide
	default: // an unknown state is ignored
	}
	if out.Ended {
		out.EndRunning()
	}
	return out
}

// ended reports whether nothing of a group runs any more.
func (g *groupStatus) ended() bool {
	switch g.Status {
	case stateSucceeded, stateFailed, stateScheduleFailed, stateExpired:
		return true
	}
	return false
}

// unmet returns why the group is not ready, by its conditions.
func (g *groupStatus) unmet() (reason, message string) {
	for _, c := range g.PodStatus.Conditions {
		if c.Status != "True" && c.Reason != "" && (c.Type == "PodScheduled" || c.Type == "ContainerInstanceCreated") {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

func (c *containerStatus) observe(group string) podstatus.Container {
	out := podstatus.Container{Name: c.Name, Restarts: c.RestartCount, Image: c.Image, ImageID: c.ImageID, Ready: c.Ready, Started: c.Started}
	id := func(run int32) string { return runID(group, c.Name, run) }
	switch ended, running := c.State.ended(), c.State.running(); {
	case ended != nil:
		out.State, out.Run = podstatus.Exited, *ended
		out.Run.ID = id(c.RestartCount)
	case running != nil:
		out.State, out.Run = podstatus.Running, *running
		out.Run.ID = id(c.RestartCount)
	case c.State.Waiting != nil:
		out.Reason, out.Message = c.State.Waiting.Reason, c.State.Waiting.Message
	}
	if out.Last = c.LastState.ended(); out.Last != nil {
		out.Last.ID = id(max(c.RestartCount, 1) - 1)
	}
	return out
}

func runID(group, container string, run int32) string {
	return fmt.Sprintf("eci://%s/%s/%d", group, container, run)
}

// ended returns a run that has ended, or nil if the state does not say so. An exit code of 0 alone proves
// nothing: a missing code is 0 too.
func (s *containerState) ended() *podstatus.Run {
	t := s.Terminated
	if t == nil || t.FinishedAt == "" && t.Reason == "" && (t.ExitCode == nil || *t.ExitCode == 0) && t.Signal == nil {
		return nil
	}
	return &podstatus.Run{
		StartedAt: podstatus.ParseTime(t.StartedAt), FinishedAt: podstatus.ParseTime(t.FinishedAt), ExitCode: exitCode(t.ExitCode, t.Signal), Reason: t.Reason, Message: t.Message,
	}
}

// running returns the current run, or nil if the state does not say so.
func (s *containerState) running() *podstatus.Run {
	if s.Running == nil {
		return nil
	}
	at := cmp.Or(s.Running.StartedAt, s.Running.StartedAtStartedAt)
	if at == "" && s.Waiting != nil {
		return nil
	}
	return &podstatus.Run{StartedAt: podstatus.ParseTime(at)}
}

func (c *describedContainer) observe(group string) podstatus.Container {
	out := podstatus.Container{Name: c.Name, Restarts: c.RestartCount, Ready: c.Ready}
	now := c.CurrentState
	switch now.State {
	case "Terminated":
		out.State, out.Run = podstatus.Exited, now.run()
	case "Running":
		out.State, out.Run = podstatus.Running, podstatus.Run{StartedAt: podstatus.ParseTime(now.StartTime)}
	default:
		out.Reason, out.Message = now.Reason, now.Message
	}
	out.Run.ID = runID(group, c.Name, c.RestartCount)
	if c.PreviousState.State == "Terminated" {
		out.Last = new(c.PreviousState.run())
		out.Last.ID = runID(group, c.Name, max(c.RestartCount, 1)-1)
	}
	return out
}

func (s *describedState) run() podstatus.Run {
	return podstatus.Run{
		StartedAt: podstatus.ParseTime(s.StartTime), FinishedAt: podstatus.ParseTime(s.FinishTime), ExitCode: exitCode(s.ExitCode, s.Signal),
		Reason: cmp.Or(s.Reason, s.DetailStatus), Message: s.Message,
	}
}

// exitCode returns the exit code of ECI, or nil if there is none. A signal without a code, or with code 0,
// becomes the code that a shell would give.
func exitCode(code, signal *int32) *int32 {
	if signal != nil && *signal > 0 && (code == nil || *code == 0) {
		return new(128 + *signal)
	}
	return code
}
