// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// The states of containers and capsules.
const (
	stateCreating = "Creating"
	stateCreated  = "Created"
	stateRunning  = "Running"
	stateStopped  = "Stopped"
	statePaused   = "Paused"
	stateError    = "Error"
	stateDead     = "Dead"
	stateDeleting = "Deleting"
	stateDeleted  = "Deleted"
)

// Reasons of pods ended by Zun.
const (
	reasonFailed = "ZunFailed"
	reasonStuck  = "ZunStuck"
)

// stuckAfter is the maximum time that a container may be in creation without an activity of Zun. A create that Zun refuses late leaves a container
// that never starts.
const stuckAfter = 3 * time.Minute

// instance is a container or capsule of this node.
type instance struct {
	container
	pod     identity.Pod
	capsule bool
	// at is the time of the request. live reports that the request was about this container alone, so Zun has
	// refreshed the state.
	at   time.Time
	live bool
	// starts is the number of restarts by an earlier process, unless the cluster has the number.
	starts int32
}

var (
	exited = regexp.MustCompile(`^Exited\((-?\d+)\)(?: (\d+) (seconds|mins|hours|days))?`)
	up     = regexp.MustCompile(`^Up (\d+) (seconds|mins|hours|days)`)
)

// timeAgo returns the time for an age that Zun reports in whole units.
func timeAgo(at time.Time, number, unit string) time.Time {
	n, err := strconv.Atoi(number)
	if err != nil {
		return at
	}
	return at.Add(-time.Duration(n) * map[string]time.Duration{"seconds": time.Second, "mins": time.Minute, "hours": time.Hour, "days": 24 * time.Hour}[unit])
}

// isUnread reports whether the container has stopped and Zun has not yet reported its exit code.
func (i instance) isUnread() bool {
	return i.Status == stateStopped && !i.capsule && !i.live && !exited.MatchString(i.StatusDetail)
}

// isStuck reports whether the creation of the container has stopped.
func (i instance) isStuck() bool {
	made := parseTime(i.CreatedAt)
	return i.Status == stateCreating && i.TaskState == "" && !made.IsZero() && i.at.Sub(made) > stuckAfter
}

// hasEnded reports whether the pod has ended, unless the node restarts it.
func (i instance) hasEnded() bool {
	switch i.Status {
	case stateStopped:
		return !i.capsule && !i.isUnread()
	case stateError, stateDead, stateDeleted:
		return true
	}
	return i.isStuck()
}

// podStatus returns the status of a pod from an instance. A part that Zun does not report keeps its last value.
func (i instance) podStatus(pod *corev1.Pod) corev1.PodStatus {
	if !i.hasKnownState() && len(pod.Status.ContainerStatuses) > 0 {
		return *pod.Status.DeepCopy()
	}
	out := podstatus.Pod{StartedAt: parseTime(i.CreatedAt), IPs: i.podAddresses()}
	if i.capsule {
		for n := range min(len(i.Containers), len(pod.Spec.Containers)) { // Zun chooses their names, and keeps their order
			member := instance{container: i.Containers[n], capsule: true, at: i.at}
			out.Containers = append(out.Containers, member.observeContainer(pod, pod.Spec.Containers[n].Name))
		}
	} else if len(pod.Spec.Containers) == 1 {
		out.Containers = []podstatus.Container{i.observeContainer(pod, pod.Spec.Containers[0].Name)}
	}
	switch {
	case i.isStuck():
		out.Ended, out.Failed, out.Reason = true, true, reasonStuck
		out.Message = "Zun has taken the container and never begun to create it. Only an administrator can delete it: openstack appcontainer delete --force " + i.UUID
	case i.hasEnded() && i.Status != stateStopped:
		out.Ended, out.Failed, out.Reason = true, true, reasonFailed
		out.Message = cmp.Or(i.StatusReason, "Zun says that the container is "+i.Status)
	}
	return podstatus.Status(pod, out)
}

// hasKnownState reports whether the state shows what the container does.
func (i instance) hasKnownState() bool {
	switch i.Status {
	case stateCreating, stateCreated, stateRunning, statePaused, stateError, stateDead, stateDeleted:
		return true
	case stateStopped:
		return !i.isUnread()
	}
	return false // in Restarting, Rebuilding, Deleting, Unknown and other states, the container may run
}

// observeContainer returns the observation of the container.
func (i instance) observeContainer(pod *corev1.Pod, name string) podstatus.Container {
	out := podstatus.Container{Name: name, Restarts: i.starts, Run: podstatus.Run{ID: "zun://" + i.UUID}}
	state := i.Status
	if i.isUnread() {
		state = ""
	}
	switch state {
	case stateRunning, statePaused:
		out.State, out.Run.StartedAt = podstatus.Running, i.startedAt(pod, name)
		if i.Status == statePaused {
			out.Ready = new(false)
		}
	case stateStopped, stateError, stateDead, stateDeleted:
		out.State = podstatus.Exited
		if told := exited.FindStringSubmatch(i.StatusDetail); told != nil && !i.capsule {
			code, err := strconv.ParseInt(told[1], 10, 32)
			if err == nil {
				out.Run.ExitCode = new(int32(code))
			}
			out.Run.StartedAt, out.Run.FinishedAt = i.startedAt(pod, name), timeAgo(i.at, told[2], told[3])
			out.Run.Message = i.StatusReason
		}
	default:
		out.Message = cmp.Or(i.StatusReason, i.TaskState)
	}
	return out
}

// startedAt returns the start time of the run: the time in the pod's status, or the time from the age that Zun reports.
func (i instance) startedAt(pod *corev1.Pod, name string) time.Time {
	for n := range pod.Status.ContainerStatuses {
		told := &pod.Status.ContainerStatuses[n]
		if told.Name == name && told.State.Running != nil {
			return told.State.Running.StartedAt.Time
		}
		if told.Name == name && told.State.Terminated != nil && i.Status == stateStopped {
			return told.State.Terminated.StartedAt.Time
		}
	}
	if told := up.FindStringSubmatch(i.StatusDetail); told != nil {
		return timeAgo(i.at, told[1], told[2])
	}
	return i.at
}

// podAddresses returns the addresses of the pod, IPv4 first.
func (i instance) podAddresses() (all []string) {
	var six []string
	for _, network := range slices.Sorted(maps.Keys(i.Addresses)) {
		for _, a := range i.Addresses[network] {
			if to := &all; a.Addr != "" {
				if slices.Contains([]any{6.0, "6"}, a.Version) {
					to = &six
				}
				*to = append(*to, a.Addr)
			}
		}
	}
	return append(all, six...)
}

// noSession refuses a request that capsules do not support.
func (i instance) noSession(what string) error {
	if i.capsule {
		return errdefs.InvalidInputf("a capsule of Zun has no %s: use a pod of one container", what)
	}
	return nil
}
