// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// AtMostOneInstance is S1: at every point, at most one instance runs per pod UID. Instances from the harness do
// not count.
func AtMostOneInstance(h History) (out []Violation) {
	live := map[types.UID]map[string]bool{}
	for i := range h.Ledger {
		e := &h.Ledger[i]
		switch {
		case e.Verb == Start && !e.Injected && !e.Foreign:
			if live[e.UID] == nil {
				live[e.UID] = map[string]bool{}
			}
			for other := range live[e.UID] {
				out = append(out, ofEntry("S1", e, "instance %s starts while instance %s runs", e.Instance, other))
			}
			live[e.UID][e.Instance] = true
		case e.Verb == Stop:
			delete(live[e.UID], e.Instance)
		}
	}
	return out
}

// OldStopsBeforeNewStarts is S2: for one namespace and name, the instance of a new UID starts only after the
// instance of the old UID has stopped, unless the old pod was force-deleted.
func OldStopsBeforeNewStarts(h History) (out []Violation) {
	live := map[string]map[string]types.UID{} // by key and instance
	for i := range h.Ledger {
		e := &h.Ledger[i]
		switch {
		case e.Verb == Start && !e.Injected && !e.Foreign:
			if live[e.Key()] == nil {
				live[e.Key()] = map[string]types.UID{}
			}
			for other, uid := range live[e.Key()] {
				if uid != e.UID && !h.Forced[uid] {
					out = append(out, ofEntry("S2", e, "instance %s starts while instance %s of UID %s runs", e.Instance, other, uid))
				}
			}
			live[e.Key()][e.Instance] = e.UID
		case e.Verb == Stop:
			delete(live[e.Key()], e.Instance)
		}
	}
	return out
}

// RemovedOnlyWhenStopped is S3: the object of a pod is removed from the API server
// only after its instance has stopped, unless it was removed by force.
func RemovedOnlyWhenStopped(h History) (out []Violation) {
	entries := h.entriesByPod()
	for i := range h.API {
		removal := &h.API[i]
		if !removal.isRemoval() || h.Forced[removal.Pod.UID] {
			continue
		}
		live := map[string]bool{}
		for _, e := range entries[removal.Pod.UID] {
			switch {
			case e.Verb == Start && !e.Injected && !e.Foreign && certainlyBefore(e, removal):
				live[e.Instance] = true
			case e.Verb == Stop && !certainlyAfter(e, removal):
				delete(live, e.Instance)
			}
		}
		for instance := range live {
			out = append(out, ofEvent("S3", removal, "removed while instance %s runs", instance))
		}
	}
	return out
}

// Quarantine is how long a pod that the API server never had must have run at the backend before
// NothingDestroyedOnSilence lets it be destroyed.
const Quarantine = 10 * time.Second

// NothingDestroyedOnSilence is S7. An instance is destroyed only when its pod is deleted, has ended or must end,
// when its pod is not in the API server (regardless of lists and caches), or when the node drains. An instance
// whose pod never was in the API server is destroyed only after Quarantine, and a foreign instance never. The
// instance of a rejected pod may be stopped. A second instance from the harness may go, too.
func NothingDestroyedOnSilence(h History) (out []Violation) {
	events := h.byUID()
	started := map[string]*Entry{}
	rejected := map[types.UID]bool{}
	for i := range h.Ledger {
		e := &h.Ledger[i]
		switch {
		case e.Verb == Start:
			started[e.Instance] = e
		case e.Verb == Stop:
			delete(started, e.Instance)
		case e.Verb == Create && e.Step == End && e.Rejected:
			rejected[e.UID] = true
		case e.Verb == Delete && e.Step == Begin && started[e.Instance] != nil:
			s := started[e.Instance]
			switch why := whyUnjustified(e, s, events[s.UID]); {
			case s.Foreign:
				out = append(out, ofEntry("S7", s, "instance %s is somebody else's, and is destroyed", e.Instance))
			case h.isDrained(e.At), s.Injected && hasTwin(started, s), e.UID == s.UID && rejected[s.UID]:
			case why != "":
				out = append(out, ofEntry("S7", e, "instance %s is destroyed although %s", e.Instance, why))
			}
		}
	}
	return out
}

// hasTwin reports whether the pod has another instance.
func hasTwin(started map[string]*Entry, s *Entry) bool {
	for _, other := range started {
		if other != s && other.UID == s.UID && !other.Injected {
			return true
		}
	}
	return false
}

// whyUnjustified returns why the instance must not be destroyed, or "" if it may.
func whyUnjustified(call, started *Entry, events []*Event) string {
	var last *Event // the last event that was certainly before the call
	for _, v := range events {
		if v.Pod.Namespace+"/"+v.Pod.Name != started.Key() {
			continue
		}
		switch {
		case certainlyBefore(call, v):
			continue
		case !certainlyAfter(call, v) && excusesStop(v, call.At):
			return "" // the events are of the same moment, so the order is unknown
		}
		last = v
	}
	switch {
	case last == nil && call.At.Sub(started.At) < Quarantine:
		return "it ran for less than the quarantine, and its pod was never in the API server"
	case last == nil || excusesStop(last, call.At):
		return ""
	}
	return "its pod is in the API server, and is not deleted"
}

// excusesStop reports whether the pod, as it is in the event, may be stopped.
func excusesStop(v *Event, at time.Time) bool {
	if v.isRemoval() || v.Pod.DeletionTimestamp != nil || isTerminal(&v.Pod.Status) {
		return true
	}
	return isOverdue(v, at)
}

// isOverdue reports whether the pod's active deadline has passed.
func isOverdue(v *Event, at time.Time) bool {
	seconds, begun := v.Pod.Spec.ActiveDeadlineSeconds, v.Pod.Status.StartTime
	return seconds != nil && begun != nil && !at.Before(begun.Add(time.Duration(*seconds)*time.Second-time.Second))
}
