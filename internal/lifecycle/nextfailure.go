// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// Limits are the node's reasons to end a pod, regardless of the backend.
type Limits struct {
	OS       string    // the operating system of the node; "": unknown
	Draining bool      // the node shuts down
	Turn     time.Time // the deadline for the pod's stop during a drain; zero: the pod's group is not draining yet
	Deadline time.Time // the end of the pod's active time; zero: no deadline
}

// NextFailure returns the failure that the pod has now, or nil. A pod fails when the node shuts down, when the pod needs another operating
// system (with a kubelet's message), or when its active deadline has passed.
func (l *Limits) NextFailure(f *Facts) *PodFailure {
	if f.API == nil || Terminal(&f.API.Status) || f.finished() {
		return nil
	}
	started, hurried := Started(f.API, f.Sent), f.Failure != nil && f.Failure.Grace != nil
	switch {
	case !started && l.Draining && !f.mustStop():
		return Refuse()
	case started && !l.Turn.IsZero() && !hurried:
		return ShutDown(f.Failure, l.Turn.Sub(f.Now))
	case f.mustStop():
	case ForeignOS(f.API, l.OS) && !f.Sent.Attempted:
		return &PodFailure{Reason: ReasonWrongOS, Message: fmt.Sprintf("the pod is for %s (spec.os.name), the node is %s", f.API.Spec.OS.Name, l.OS)}
	case !l.Deadline.IsZero() && !f.Now.Before(l.Deadline):
		return &PodFailure{Reason: ReasonDeadline, Message: "the pod was active for longer than spec.activeDeadlineSeconds", Normal: true}
	}
	return nil
}

// UntilDeadline returns how long the pod may still be active. It returns 0 if the pod has no deadline, or ends
// anyway.
func (l *Limits) UntilDeadline(f *Facts) time.Duration {
	if l.Deadline.IsZero() || f.API == nil || f.mustStop() {
		return 0
	}
	if f.finished() || Terminal(&f.API.Status) {
		return 0
	}
	return l.Deadline.Sub(f.Now)
}
