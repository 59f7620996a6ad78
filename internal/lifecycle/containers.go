// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// reasonStatusUnknown is that of a container that has run and whose end nobody told.
const reasonStatusUnknown = "ContainerStatusUnknown"

// mergeContainers returns the statuses that follow from the reported ones. A
// report without any leaves the old ones. Restart counts never fall; after the
// end of the pod no container runs or starts again, and before it none that is final, unless it is another instance. How a
// container ended is the backend's to tell: until it does, that is unknown.
func mergeContainers(old, reported []corev1.ContainerStatus, ended bool, final func(*corev1.ContainerStatus) bool) []corev1.ContainerStatus {
	if len(reported) == 0 {
		reported = old
	}
	merged := make([]corev1.ContainerStatus, 0, len(reported))
	for i := range reported {
		now, before := reported[i], statusNamed(old, reported[i].Name)
		if before != nil {
			now.RestartCount = max(now.RestartCount, before.RestartCount)
			if before.State.Terminated != nil && now.State.Terminated == nil && (ended || final(before)) {
				if !ended && replaces(&reported[i], before) {
					continue // the API server takes it when it has no status of the container: with the next write
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

// replaces reports whether a container that runs is another instance than the one that has ended, and not an earlier one: the backend replaced it,
// for a new image for example. The same instance is told late.
func replaces(running, ended *corev1.ContainerStatus) bool {
	switch {
	case running.State.Running == nil, running.RestartCount < ended.RestartCount:
		return false
	case running.RestartCount > ended.RestartCount:
		return true
	}
	return running.ContainerID != "" && ended.ContainerID != "" && running.ContainerID != ended.ContainerID &&
		!running.State.Running.StartedAt.Time.Before(ended.State.Terminated.FinishedAt.Time)
}

// hasEverRun reports whether a container has run, as far as the report and the status before tell. One that comes
// after an init container that failed has not, for example.
func hasEverRun(now, before *corev1.ContainerStatus) bool {
	return ran(now) || before != nil && ran(before)
}

func ran(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil ||
		s.ContainerID != "" || s.RestartCount > 0 || endUnknown(s)
}

// endUnknown reports whether the container is shown as one that has ended nobody knows how.
func endUnknown(s *corev1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == reasonStatusUnknown
}

// endNotTold is the state of a container of a pod that has ended: it has run, and did not end
// as far as the backend told. No exit code is made up.
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

// byPolicy says of a terminated container of the pod that it can never run
// again: the API server refuses a report that says otherwise.
func byPolicy(pod *corev1.Pod) func(*corev1.ContainerStatus) bool {
	return func(st *corev1.ContainerStatus) bool {
		var ended *corev1.Container
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if slices.ContainsFunc(list[i].RestartPolicyRules, restartsAll) {
					return false // the end of that one may start it again
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

// once is byPolicy for ephemeral containers, which are never restarted.
func once(*corev1.ContainerStatus) bool { return true }

// truncateTimes cuts every time to whole seconds, as the API server does: a
// fraction would make each comparison fail and each status be written for ever.
func truncateTimes(s *corev1.PodStatus) {
	if s.StartTime != nil && fraction(*s.StartTime) {
		s.StartTime = &metav1.Time{Time: s.StartTime.Truncate(time.Second)}
	}
	s.InitContainerStatuses = truncateContainers(s.InitContainerStatuses)
	s.ContainerStatuses = truncateContainers(s.ContainerStatuses)
	s.EphemeralContainerStatuses = truncateContainers(s.EphemeralContainerStatuses)
	s.Conditions = truncateConditions(s.Conditions)
}

// truncateContainers returns the list itself if there is nothing to cut.
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

// truncateConditions returns the list itself if there is nothing to cut.
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

// fraction reports whether there is anything to cut.
func fraction(t metav1.Time) bool { return t.Nanosecond() != 0 }

// unsupportedContainers is the status of containers that were added to a pod whose backend adds none.
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
