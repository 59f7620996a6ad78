// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
)

// nextFailure returns the failure that the pod has now, or nil. A pod fails when the node shuts down, when the
// pod needs another operating system (with a kubelet's words), or when its active deadline has passed. It also
// fails when the node has no room for it, or when the backend lacks a feature that the pod needs and such pods
// are set to fail.
func nextFailure(f *Facts) *PodFailure {
	if f.API == nil || Terminal(&f.API.Status) || f.Finished {
		return nil
	}
	started := Started(f.API, f.Sent)
	switch {
	case !started && f.Draining && f.Failure == nil && f.API.DeletionTimestamp == nil:
		return Refuse()
	case started && !f.Turn.IsZero() && (f.Failure == nil || f.Failure.Grace == nil):
		return ShutDown(f.Failure, f.Turn.Sub(f.Now))
	case f.API.DeletionTimestamp != nil, f.Failure != nil:
	case ForeignOS(f.API, f.OS) && !f.Sent.Attempted:
		return &PodFailure{Reason: ReasonWrongOS, Message: fmt.Sprintf("the pod is for %s (spec.os.name), the node is %s", f.API.Spec.OS.Name, f.OS)}
	case !f.Deadline.IsZero() && !f.Now.Before(f.Deadline):
		return &PodFailure{Reason: ReasonDeadline, Message: "the pod was active for longer than spec.activeDeadlineSeconds", Normal: true}
	case f.NoRoom != nil:
		return f.NoRoom
	case f.Unsupported != "" && f.FailUnsupported:
		return &PodFailure{Reason: ReasonUnsupported, Message: f.Unsupported}
	}
	return nil
}

// untilDeadline returns how long the pod may still be active. It returns 0 if the pod has no deadline, or ends
// anyway.
func (f *Facts) untilDeadline() time.Duration {
	if f.API == nil || f.mustStop() || f.Finished || Terminal(&f.API.Status) || f.Deadline.IsZero() {
		return 0
	}
	return f.Deadline.Sub(f.Now)
}
