// SPDX-License-Identifier: Apache-2.0

package skeleton

import "github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"

// Known states of containers. The service may have others.
const (
	stateCreating = "creating"
	stateRunning  = "running"
	stateWaiting  = "waiting" // for its next run
	stateStopped  = "stopped"
)

// observedPod converts the state of a group, from which the kit computes the status of a pod. It is a pure function.
//
// FILL(status): add a line for every state of your service, here and in the table of status_test.go, also for unknown states. Never invent a value:
// an unknown exit code is not 0.
func observedPod(g group) podstatus.Pod {
	seen := podstatus.Pod{StartedAt: g.Created, Ended: g.hasEnded()}
	if g.Address != "" {
		seen.IPs = []string{g.Address}
	}
	for _, c := range g.Containers {
		seen.Containers = append(seen.Containers, observedContainer(c))
	}
	return seen
}

// hasEnded reports whether all containers of a group have ended for good.
func (g group) hasEnded() bool {
	for _, c := range g.Containers {
		if c.State != stateStopped { // a container that waits for its next run has not ended
			return false
		}
	}
	return len(g.Containers) > 0
}

func observedContainer(c container) podstatus.Container {
	seen := podstatus.Container{Name: c.Name, Image: c.Image, ImageID: c.Image, Restarts: c.Restarts}
	if c.Last != nil {
		seen.Last = observedRun(*c.Last)
	}
	switch c.State {
	case stateRunning:
		seen.State, seen.Run = podstatus.Running, *observedRun(c.Run)
	case stateStopped:
		seen.State, seen.Run = podstatus.Exited, *observedRun(c.Run)
	case stateWaiting:
		seen.Reason, seen.Message, seen.Last = "CrashLoopBackOff", "the container waits for its next run", observedRun(c.Run)
	case stateCreating:
		seen.Reason = "ContainerCreating"
	default:
		seen.Reason, seen.Message = "Unknown", "skeleton says that the container is "+c.State
	}
	return seen
}

func observedRun(r run) *podstatus.Run {
	return &podstatus.Run{ID: "skeleton://" + r.ID, StartedAt: r.Started, FinishedAt: r.Finished, ExitCode: r.ExitCode}
}
