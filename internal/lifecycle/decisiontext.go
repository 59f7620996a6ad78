// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
)

var stepNames = [...]string{
	Rest: "Rest", Wait: "Wait", Forget: "Forget",
	AskByName: "AskByName", AskAll: "AskAll", ReadLive: "ReadLive", Admit: "Admit", CountMissing: "CountMissing", CountOrphan: "CountOrphan",
	TakeEnd: "TakeEnd", Fail: "Fail", BeginOrphan: "BeginOrphan", Recreate: "Recreate",
	Retry: "Retry", Unsupported: "Unsupported", Create: "Create", Adopt: "Adopt", Update: "Update", Stop: "Stop", Stopped: "Stopped",
	Gone: "Gone", Missing: "Missing", Relist: "Relist", DeleteOrphan: "DeleteOrphan", Release: "Release",
}

// String returns the name of the step.
func (s Step) String() string { return stepNames[s] }

// String returns the facts that explain most decisions, for a log line. It contains nothing from a spec.
func (f *Facts) String() string {
	var facts []string
	add := func(is bool, text string) {
		if is {
			facts = append(facts, text)
		}
	}
	add(f.API == nil, "the API server lacks the pod")
	if f.API != nil {
		add(f.API.DeletionTimestamp != nil, "the pod is deleted")
		add(Terminal(&f.API.Status), "the pod has ended")
	}
	if f.Failure != nil {
		add(true, "the pod has failed with "+f.Failure.Reason)
	}
	add(f.accepted(), "the backend has accepted the pod")
	add(f.Stopped, "the backend has confirmed the stop")
	switch {
	case f.Silent:
		add(true, "the backend does not answer")
	case f.Doubtful:
		add(true, "the backend's answer is doubtful")
	case f.Backend != nil:
		add(true, fmt.Sprintf("the backend has the pod with UID %q and phase %q", f.Backend.UID, f.Backend.Status.Phase))
	default:
		add(f.Taken.Has(AskByName), "the backend lacks the pod")
	}
	add(f.Unsupported != "", "the backend lacks features that the pod needs")
	if f.NoRoom != nil {
		add(true, "the node has no room: "+f.NoRoom.Reason)
	}
	add(f.Held > 0, fmt.Sprintf("a missing pod is held back for %v", f.Held))
	add(f.OrphanHeld > 0, fmt.Sprintf("an orphan is held back for %v", f.OrphanHeld))
	add(f.Draining, "the node shuts down")
	return strings.Join(facts, ", ")
}
