// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
)

var stepNames = [...]string{
	Rest: "Rest", Wait: "Wait", Forget: "Forget",
	Look: "Look", ReadLive: "ReadLive", Fail: "Fail", Recreate: "Recreate",
	Retry: "Retry", Create: "Create", Adopt: "Adopt", Update: "Update", Stop: "Stop", Stopped: "Stopped",
	Gone: "Gone", Missing: "Missing", Relist: "Relist", DeleteOrphan: "DeleteOrphan",
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
	case f.Own != nil:
		add(true, fmt.Sprintf("the backend has the pod in phase %q", f.Own.Status.Phase))
	default:
		add(f.Doubtful, "the backend's answer is doubtful")
		add(f.Taken.Has(Look), "the backend lacks the pod")
	}
	for _, o := range f.Others {
		if o.Pod != nil {
			add(true, fmt.Sprintf("the backend has another pod, with UID %q and phase %q", o.UID, o.Pod.Status.Phase))
		}
	}
	add(f.Held > 0, fmt.Sprintf("a missing pod is held back for %v", f.Held))
	add(f.OrphanHeld > 0, fmt.Sprintf("an orphan is held back for %v", f.OrphanHeld))
	return strings.Join(facts, ", ")
}
