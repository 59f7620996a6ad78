// SPDX-License-Identifier: Apache-2.0

// Package ledger is the evidence of a test with faults: the history of the backend, entry by entry, the history
// of the API server, event by event, and the safety invariants of a node as pure functions over both.
//
// The guarantee: a checker looks only at the two histories, never at the claims of a controller, and returns the
// same for the same histories.
//
// Note: an undecidable case is no violation. Entries and events of the same moment may have happened in
// either order, unless one Recorder recorded both, and effects shortly before the end may still be under way.
package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// History is the history of a test.
type History struct {
	Ledger []Entry // in the order of Seq
	API    []Event // in the order of their arrival
	// Forced are the pods removed from the API server by a user, or a controller such as PodGC, without waiting
	// for the node.
	Forced map[types.UID]bool
	// Foreign are the writes of other clients than the node.
	Foreign []ForeignWrite
	// Drained is the time when the node was told to stop its pods for good, for example before it shuts down;
	// zero: never. From then on it may stop any pod of its own, and fail it.
	Drained time.Time
	// End is the end of the test; zero: the time of the last entry or event.
	End time.Time
	// Settle is how long before End an event must happen to be certain of its effect; 0: 5 seconds.
	Settle time.Duration
}

// Violation names the broken invariant and the cause.
type Violation struct {
	Invariant string // S1 to S8
	UID       types.UID
	Key       string // namespace/name
	At        time.Time
	Text      string
}

// String returns the message for a failing test.
func (v Violation) String() string {
	return fmt.Sprintf("%s: pod %s (UID %s) at %s: %s", v.Invariant, v.Key, v.UID, v.At.UTC().Format("15:04:05.000"), v.Text)
}

// Checker judges one invariant.
type Checker func(History) []Violation

// Checkers returns the checkers by the name of their invariant.
func Checkers() map[string]Checker {
	return map[string]Checker{
		"S1": AtMostOneInstance, "S2": OldStopsBeforeNewStarts, "S3": RemovedOnlyWhenStopped, "S4": TerminalIsAbsorbing,
		"S5": LastStatusWins, "S6": ForeignWritesSurvive, "S7": NothingDestroyedOnSilence, "S8": FailedOnlyForCause,
	}
}

// Check judges all invariants except the named ones.
func Check(h History, but ...string) (out []Violation) {
	checkers := Checkers()
	for _, name := range []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"} {
		if !slices.Contains(but, name) {
			out = append(out, checkers[name](h)...)
		}
	}
	return out
}

// isSettled reports whether an event at that time must have had its effect by the end.
func (h *History) isSettled(at time.Time) bool {
	return at.Add(cmp.Or(h.Settle, 5*time.Second)).Before(h.endTime())
}

// isDrained reports whether the node was draining at that time.
func (h *History) isDrained(at time.Time) bool { return !h.Drained.IsZero() && !at.Before(h.Drained) }

func (h *History) endTime() time.Time {
	end := h.End
	if end.IsZero() {
		if n := len(h.Ledger); n > 0 {
			end = h.Ledger[n-1].At
		}
		if n := len(h.API); n > 0 && h.API[n-1].At.After(end) {
			end = h.API[n-1].At
		}
	}
	return end
}

// certainlyBefore reports whether the entry certainly happened before the event.
func certainlyBefore(e *Entry, v *Event) bool {
	if e.Seq != 0 && v.Seq != 0 {
		return e.Seq < v.Seq
	}
	return e.At.Before(v.At)
}

// certainlyAfter reports whether the entry certainly happened after the event.
func certainlyAfter(e *Entry, v *Event) bool {
	if e.Seq != 0 && v.Seq != 0 {
		return e.Seq > v.Seq
	}
	return e.At.After(v.At)
}

// byUID returns the events about each pod, in order.
func (h *History) byUID() map[types.UID][]*Event {
	m := map[types.UID][]*Event{}
	for i := range h.API {
		e := &h.API[i]
		m[e.Pod.UID] = append(m[e.Pod.UID], e)
	}
	return m
}

// entriesByPod returns the entries about each pod, in order.
func (h *History) entriesByPod() map[types.UID][]*Entry {
	m := map[types.UID][]*Entry{}
	for i := range h.Ledger {
		e := &h.Ledger[i]
		m[e.UID] = append(m[e.UID], e)
	}
	return m
}

// sortedUIDs returns the keys of a map in order, for deterministic results.
func sortedUIDs[V any](m map[types.UID]V) []types.UID {
	out := make([]types.UID, 0, len(m))
	for uid := range m {
		out = append(out, uid)
	}
	slices.Sort(out)
	return out
}

func ofEntry(invariant string, e *Entry, format string, args ...any) Violation {
	return Violation{Invariant: invariant, UID: e.UID, Key: e.Key(), At: e.At, Text: fmt.Sprintf(format, args...)}
}

func ofEvent(invariant string, e *Event, format string, args ...any) Violation {
	return Violation{Invariant: invariant, UID: e.Pod.UID, Key: e.Pod.Namespace + "/" + e.Pod.Name, At: e.At, Text: fmt.Sprintf(format, args...)}
}

func isTerminal(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// isRemoval reports whether the event is the pod's removal.
func (e *Event) isRemoval() bool { return e.Type == watch.Deleted }
