// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TerminalIsAbsorbing is S4: a pod that Succeeded or Failed in the API server stays so, none of its instances
// starts or runs afterwards, and restart counts never fall.
func TerminalIsAbsorbing(h History) (out []Violation) {
	events, entries := h.byUID(), h.entriesByPod()
	for _, uid := range sortedUIDs(events) {
		var ended *Event
		var before *corev1.PodStatus
		for _, v := range events[uid] {
			s := &v.Pod.Status
			if before != nil {
				for name, n := range restartCounts(before) {
					if now, has := restartCounts(s)[name]; has && now < n {
						out = append(out, ofEvent("S4", v, "restart count of container %s falls from %d to %d", name, n, now))
					}
				}
			}
			if ended != nil && s.Phase != ended.Pod.Status.Phase {
				out = append(out, ofEvent("S4", v, "phase %s becomes %s", ended.Pod.Status.Phase, s.Phase))
			}
			if ended != nil && before != nil {
				for _, name := range runningContainers(s) {
					if !slices.Contains(runningContainers(before), name) {
						out = append(out, ofEvent("S4", v, "container %s runs although the pod is %s", name, ended.Pod.Status.Phase))
					}
				}
			}
			if ended == nil && isTerminal(s) {
				ended = v
			}
			before = s
		}
		for _, e := range entries[uid] {
			if ended != nil && e.Verb == Start && !e.Injected && certainlyAfter(e, ended) {
				out = append(out, ofEntry("S4", e, "instance %s starts although the pod is %s", e.Instance, ended.Pod.Status.Phase))
			}
		}
	}
	return out
}

func allContainers(s *corev1.PodStatus) []corev1.ContainerStatus {
	return slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses)
}

func restartCounts(s *corev1.PodStatus) map[string]int32 {
	m := map[string]int32{}
	for _, c := range allContainers(s) {
		m[c.Name] = c.RestartCount
	}
	return m
}

func runningContainers(s *corev1.PodStatus) (names []string) {
	for _, c := range allContainers(s) {
		if c.State.Running != nil {
			names = append(names, c.Name)
		}
	}
	return names
}

// LastStatusWins is S5: in the end, the API server shows the last status of a pod that the provider reported, or
// has, and no older status overwrites a newer one on the way. A terminal status is the last except for late exit
// codes. The message counts unless the pod's reason marks it as the node's own.
func LastStatusWins(h History) (out []Violation) {
	entries, events := h.entriesByPod(), h.byUID()
	for _, uid := range sortedUIDs(events) {
		var told []*Entry
		pod := events[uid][0].Pod
		for _, e := range entries[uid] {
			if (e.Verb == Report || e.Verb == Status) && e.Status != nil && !e.Foreign && e.Namespace == pod.Namespace && e.Name == pod.Name {
				told = append(told, e)
			}
		}
		if len(told) == 0 {
			continue
		}
		out = append(out, h.neverBack(events[uid], told)...)
		out = append(out, h.lastTold(events[uid], told)...)
	}
	return out
}

// lastTold judges the final status in the API server.
func (h *History) lastTold(events []*Event, told []*Entry) []Violation {
	last := events[len(events)-1]
	shown := &last.Pod.Status
	final, state := told[len(told)-1], told[len(told)-1]
	for _, e := range told {
		if isTerminal(e.Status) || !isTerminal(final.Status) {
			final = e
		}
		if e.Verb == Status {
			state = e
		}
	}
	switch {
	case last.isRemoval() && (h.Forced[last.Pod.UID] || !certainlyBefore(final, last)),
		!last.isRemoval() && !h.isSettled(final.At):
		return nil
	case statusDigest(shown) == statusDigest(final.Status), shown.Reason == nodesReason && phaseDigest(shown) == phaseDigest(final.Status):
		return nil
	case statusDigest(shown) == statusDigest(state.Status) && !isTerminal(final.Status):
		return nil // the last report is older than the state of the backend, and the node asked the backend
	case isTerminal(shown) && !isTerminal(final.Status):
		return nil // the node's own failure, which FailedOnlyForCause judges
	case isTerminal(shown) && isTerminal(final.Status) && containerDigest(shown) == containerDigest(final.Status):
		return nil // the failure follows the final status
	}
	return []Violation{ofEvent("S5", last, "shows %s, the last status is %s (entry %d)", statusDigest(shown), statusDigest(final.Status), final.Seq)}
}

// nodesReason is the reason of a status with the node's own message.
const nodesReason = "ProviderFailed"

// neverBack judges the way to the final status: the reported statuses appear in the API server in the order of
// their reports. The backend's own status is no step back: reports can be late and out of order, and a restarted
// node asks the backend.
func (h *History) neverBack(events []*Event, told []*Entry) (out []Violation) {
	at := 0
	for _, v := range events {
		shown := statusDigest(&v.Pod.Status)
		is := func(e *Entry) bool { return statusDigest(e.Status) == shown && !certainlyAfter(e, v) }
		if next := slices.IndexFunc(told[at:], is); next >= 0 {
			at += next
		} else if older := slices.IndexFunc(told[:at], is); older >= 0 && !hadStatus(told, v, shown) {
			out = append(out, ofEvent("S5", v, "shows %s (entry %d) after %s (entry %d)", shown, told[older].Seq, statusDigest(told[at].Status), told[at].Seq))
		}
	}
	return out
}

// hadStatus reports whether the backend itself had the shown status at the time of the event.
func hadStatus(told []*Entry, v *Event, shown string) bool {
	for _, e := range slices.Backward(told) {
		if e.Verb != Status || certainlyAfter(e, v) {
			continue
		}
		if statusDigest(e.Status) == shown {
			return true
		}
		if certainlyBefore(e, v) {
			return false
		}
	}
	return false
}

// statusDigest returns the provider's part of a status: a node must not change this part.
func statusDigest(s *corev1.PodStatus) string {
	return fmt.Sprintf("%s reason=%q message=%q", phaseDigest(s), s.Reason, s.Message)
}

func phaseDigest(s *corev1.PodStatus) string { return string(s.Phase) + containerDigest(s) }

func containerDigest(s *corev1.PodStatus) (text string) {
	for _, c := range allContainers(s) {
		switch {
		case c.State.Terminated != nil:
			text += fmt.Sprintf(" %s=exit:%d", c.Name, c.State.Terminated.ExitCode)
		case c.State.Running != nil && !isTerminal(s): // an ended pod cannot show a running container
			text += fmt.Sprintf(" %s=running:%d", c.Name, c.RestartCount)
		}
	}
	return text
}

// FailedOnlyForCause is S8: a pod becomes Failed in the API server only for a cause. The provider reported it or
// rejected the pod, its instance is gone or failed, the pod was deleted, its active deadline has passed, it is
// for another operating system, the node was draining, or another client wrote it. A temporary error, or a
// clock, is no cause.
func FailedOnlyForCause(h History) (out []Violation) {
	entries := h.entriesByPod()
	judged := map[types.UID]bool{} // failed pods, from the history or before it
	seen := map[types.UID]bool{}
	for i := range h.API {
		v := &h.API[i]
		first := !seen[v.Pod.UID]
		seen[v.Pod.UID] = true
		if judged[v.Pod.UID] || v.Pod.Status.Phase != corev1.PodFailed {
			continue
		}
		judged[v.Pod.UID] = true
		if first {
			continue
		}
		deleted := v.isRemoval() || v.Pod.DeletionTimestamp != nil
		if deleted || h.isDrained(v.At) || v.Pod.Spec.OS != nil || isOverdue(v, v.At) || h.saidByOthers(v) || slices.ContainsFunc(entries[v.Pod.UID], func(e *Entry) bool {
			return !certainlyAfter(e, v) && (e.Verb == Stop || e.Verb == Create && e.Rejected || e.Status != nil && showsFailure(e.Status))
		}) {
			continue
		}
		out = append(out, ofEvent("S8", v, "is Failed (%s %q) without a cause", v.Pod.Status.Reason, v.Pod.Status.Message))
	}
	return out
}

func showsFailure(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodFailed || slices.ContainsFunc(allContainers(s), func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	})
}

func (h *History) saidByOthers(v *Event) bool {
	return slices.ContainsFunc(h.Foreign, func(w ForeignWrite) bool {
		return w.UID == v.Pod.UID && w.Field == Phase && w.Value == string(v.Pod.Status.Phase) && !w.cameAfter(v)
	})
}
