// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// event is an event of a container.
type event struct {
	Count          int    `json:"count"`
	FirstTimestamp string `json:"firstTimestamp"`
	LastTimestamp  string `json:"lastTimestamp"`
	Name           string `json:"name"`
	Message        string `json:"message"`
	Type           string `json:"type"`
}

// provisioningState returns the progress of the creation of a group.
func provisioningState(g *group, seen emulator.Seen) string {
	if g.failed != "" {
		return "Failed"
	}
	for _, all := range [][]corev1.ContainerStatus{seen.Status.InitContainerStatuses, seen.Status.ContainerStatuses} {
		for i := range all {
			if all[i].State.Running != nil || all[i].State.Terminated != nil || all[i].RestartCount > 0 {
				return "Succeeded"
			}
		}
	}
	return "Pending"
}

// groupView returns a group with the states of its containers.
func (s *Server) groupView(ctx context.Context, g *group) (map[string]any, error) {
	body := s.groupBody(g)
	properties := body["properties"].(map[string]any)
	if g.failed != "" {
		properties["provisioningState"] = "Failed"
		now := time.Now().UTC().Format(time.RFC3339)
		properties["instanceView"] = map[string]any{"state": "Failed", "events": []event{{1, now, now, "Failed", g.failed, "Warning"}}}
		return body, nil
	}
	seen, err := s.fleet.Get(ctx, s.idOf(g))
	if err == nil && seen.Gone {
		err = errdefs.NotFound("it is gone")
	}
	switch again, stopped := s.pendingChange(g); {
	case again && errdefs.IsNotFound(err):
		s.runAgain(ctx, g)
		return s.groupView(ctx, g)
	case again: // the group ends first
		properties["provisioningState"] = "Succeeded"
		properties["instanceView"] = map[string]any{"state": "Pending", "events": []event{}}
		return body, nil
	case stopped && errdefs.IsNotFound(err): // containers are removed, with their states
		properties["provisioningState"] = "Succeeded"
		properties["instanceView"] = map[string]any{"state": "Stopped", "events": []event{}}
		return body, nil
	}
	if err != nil {
		if errdefs.IsNotFound(err) {
			s.dropGroup(g)
		}
		return nil, err
	}
	state := map[corev1.PodPhase]string{corev1.PodSucceeded: "Succeeded", corev1.PodFailed: "Failed", corev1.PodRunning: "Running"}[seen.Status.Phase]
	if state == "" {
		state = "Pending"
	}
	properties["provisioningState"] = provisioningState(g, seen)
	properties["instanceView"] = map[string]any{"state": state, "events": []event{}}
	if seen.Status.PodIP != "" && (len(g.asked.Properties.SubnetIDs) > 0 || g.asked.Properties.IPAddress != nil) {
		address, _ := properties["ipAddress"].(map[string]any)
		if address == nil {
			address = map[string]any{"type": "Private", "ports": []any{}}
		}
		address["ip"] = seen.Status.PodIP
		properties["ipAddress"] = address
	}
	s.fillStatuses(g, properties["initContainers"], seen.Status.InitContainerStatuses)
	s.fillStatuses(g, properties["containers"], seen.Status.ContainerStatuses)
	return body, nil
}

// fillStatuses writes the statuses into the containers of a body.
func (s *Server) fillStatuses(g *group, containers any, statuses []corev1.ContainerStatus) {
	all, _ := containers.([]any)
	for _, one := range all {
		c := one.(map[string]any)
		for i := range statuses {
			if statuses[i].Name == c["name"] {
				properties := c["properties"].(map[string]any)
				view := map[string]any{"restartCount": statuses[i].RestartCount, "currentState": stateView(statuses[i].State), "events": []event{}}
				if statuses[i].LastTerminationState.Terminated != nil {
					view["previousState"] = stateView(statuses[i].LastTerminationState)
				}
				if _, probed := properties["readinessProbe"]; probed {
					view["events"] = s.readinessEvents(g, &statuses[i])
				}
				properties["instanceView"] = view
			}
		}
	}
}

// readinessEvents returns the events of a readiness probe. The last event has the time of the last failure.
func (s *Server) readinessEvents(g *group, c *corev1.ContainerStatus) []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, failed := g.events[c.Name]
	if c.State.Running != nil && !c.Ready {
		now := time.Now().UTC().Format(time.RFC3339Nano)
		if !failed {
			e = event{FirstTimestamp: now, Name: "Unhealthy", Message: "Readiness probe failed: exit code 1", Type: "Warning"}
		}
		e.Count, e.LastTimestamp = e.Count+1, now
		g.events[c.Name] = e
		return []event{e}
	}
	if !failed {
		return []event{}
	}
	return []event{e}
}

// stateView returns a state in the form of the service.
func stateView(s corev1.ContainerState) map[string]any {
	switch {
	case s.Running != nil:
		return map[string]any{"state": "Running", "startTime": formatTime(s.Running.StartedAt), "detailStatus": ""}
	case s.Terminated != nil:
		t := s.Terminated
		return map[string]any{"state": "Terminated", "startTime": formatTime(t.StartedAt), "finishTime": formatTime(t.FinishedAt), "exitCode": t.ExitCode, "detailStatus": t.Reason}
	case s.Waiting != nil:
		return map[string]any{"state": "Waiting", "detailStatus": s.Waiting.Reason}
	}
	return map[string]any{"state": "Waiting", "detailStatus": ""}
}
