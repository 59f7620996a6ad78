// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// reasonStatusUnknown is the waiting reason of a container that has run and whose end was not reported.
const reasonStatusUnknown = "ContainerStatusUnknown"

// mergeContainers merges the reported container statuses into the old ones. A report without container statuses keeps the old ones. Restart
// counts never decrease. After the end of the pod no container runs or starts again. Before that, no finally terminated container starts
// again, unless the report shows another instance. Only the backend knows how a container ended; until it reports that, the end is unknown.
func mergeContainers(old, reported []corev1.ContainerStatus, ended bool, final func(*corev1.ContainerStatus) bool) []corev1.ContainerStatus {
	if len(reported) == 0 {
		reported = old
	}
	merged := make([]corev1.ContainerStatus, 0, len(reported))
	for i := range reported {
		now, before := reported[i], statusNamed(old, reported[i].Name)
		if before != nil {
			now.RestartCount = max(now.RestartCount, before.RestartCount)
			revives := before.State.Terminated != nil && now.State.Terminated == nil
			if revives && (ended || final(before)) {
				if !ended && replaces(&reported[i], before) {
					continue // the API server accepts the instance if the container has no status: with the next write
				}
				now = *before
			}
		}
		if ended && now.State.Terminated == nil && hasEverRun(&now, before) {
			now.State = corev1.ContainerState{Waiting: endNotTold()}
			now.Ready, now.Started = false, new(bool)
		}
		merged = append(merged, now)
	}
	return merged
}

// replaces reports whether the running container is a later instance than the ended one. The backend replaces an instance for a new image,
// for example. If the report shows the same instance as running, the report is late.
func replaces(running, ended *corev1.ContainerStatus) bool {
	switch {
	case running.State.Running == nil, running.RestartCount < ended.RestartCount:
		return false
	case running.RestartCount > ended.RestartCount:
		return true
	case running.ContainerID == "", ended.ContainerID == "", running.ContainerID == ended.ContainerID:
		return false
	}
	return !running.State.Running.StartedAt.Time.Before(ended.State.Terminated.FinishedAt.Time)
}

// hasEverRun reports whether a container has run, according to the report or the earlier status. For example, a container has not run if an
// init container failed.
func hasEverRun(now, before *corev1.ContainerStatus) bool {
	return hasRunOnce(now) || before != nil && hasRunOnce(before)
}

func hasRunOnce(s *corev1.ContainerStatus) bool {
	if s.ContainerID != "" || s.RestartCount > 0 || endUnknown(s) {
		return true
	}
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

// endUnknown reports whether the status shows a container with an unknown end.
func endUnknown(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reasonStatusUnknown
}

// endNotTold returns the waiting state of a container that has run in an ended pod and whose end was not reported. It contains no invented
// exit code.
func endNotTold() *corev1.ContainerStateWaiting {
	return &corev1.ContainerStateWaiting{
		Reason: reasonStatusUnknown, Message: "the pod has ended, and the backend has not told how this container ended",
	}
}

func statusNamed(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// byPolicy returns a function that reports whether a terminated container of the pod can never run again. The
// API server refuses a report that shows such a container as restarted.
func byPolicy(pod *corev1.Pod) func(*corev1.ContainerStatus) bool {
	return func(st *corev1.ContainerStatus) bool {
		var ended *corev1.Container
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if slices.ContainsFunc(list[i].RestartPolicyRules, restartsAll) {
					return false // the end of that container may restart this one
				}
				if ended == nil && list[i].Name == st.Name {
					ended = &list[i]
				}
			}
		}
		return ended == nil || !podstatus.RestartsAfter(pod, ended, st.State.Terminated.ExitCode)
	}
}

func restartsAll(r corev1.ContainerRestartRule) bool {
	return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
}

// neverRestarts replaces byPolicy for ephemeral containers, which are never restarted.
func neverRestarts(*corev1.ContainerStatus) bool { return true }

// truncateTimes truncates every time to whole seconds, as the API server does: otherwise no comparison would be equal, and the status would
// be written again and again.
func truncateTimes(s *corev1.PodStatus) {
	if s.StartTime != nil && fraction(*s.StartTime) {
		s.StartTime = &metav1.Time{Time: s.StartTime.Truncate(time.Second)}
	}
	s.InitContainerStatuses = truncateContainers(s.InitContainerStatuses)
	s.ContainerStatuses = truncateContainers(s.ContainerStatuses)
	s.EphemeralContainerStatuses = truncateContainers(s.EphemeralContainerStatuses)
	s.Conditions = truncateConditions(s.Conditions)
}

// truncateContainers returns the list itself if no time has a fraction.
func truncateContainers(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	shared := true
	for i := range list {
		now, cut := truncateState(list[i].State)
		last, cutLast := truncateState(list[i].LastTerminationState)
		if !cut && !cutLast {
			continue
		}
		if shared {
			list, shared = slices.Clone(list), false
		}
		list[i].State, list[i].LastTerminationState = now, last
	}
	return list
}

func truncateState(st corev1.ContainerState) (_ corev1.ContainerState, cut bool) {
	if r := st.Running; r != nil && fraction(r.StartedAt) {
		after := *r
		after.StartedAt.Time = r.StartedAt.Truncate(time.Second)
		st.Running, cut = &after, true
	}
	if t := st.Terminated; t != nil && (fraction(t.StartedAt) || fraction(t.FinishedAt)) {
		after := *t
		after.StartedAt.Time, after.FinishedAt.Time = t.StartedAt.Truncate(time.Second), t.FinishedAt.Truncate(time.Second)
		st.Terminated, cut = &after, true
	}
	return st, cut
}

// truncateConditions returns the list itself if no time has a fraction.
func truncateConditions(list []corev1.PodCondition) []corev1.PodCondition {
	shared := true
	for i := range list {
		if c := &list[i]; !fraction(c.LastTransitionTime) && !fraction(c.LastProbeTime) {
			continue
		}
		if shared {
			list, shared = slices.Clone(list), false
		}
		list[i].LastTransitionTime.Time = list[i].LastTransitionTime.Truncate(time.Second)
		list[i].LastProbeTime.Time = list[i].LastProbeTime.Truncate(time.Second)
	}
	return list
}

// fraction reports whether the time has a fraction of a second.
func fraction(t metav1.Time) bool { return t.Nanosecond() != 0 }

// unsupportedContainers returns the statuses of added containers for a backend that cannot add containers.
func unsupportedContainers(added []corev1.EphemeralContainer) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, len(added))
	for i := range added {
		statuses[i] = corev1.ContainerStatus{
			Name: added[i].Name, Image: added[i].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "Unsupported", Message: "this node cannot add containers to a pod that runs",
			}},
		}
	}
	return statuses
}
