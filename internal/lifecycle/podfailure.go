// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of failures. But for the last two, they are a kubelet's.
const (
	ReasonDeadline = "DeadlineExceeded"
	ReasonWrongOS  = "PodOSNotSupported"
	ReasonLost     = "ProviderPodLost"
	ReasonRejected = "ProviderPodRejected"
)

// What a kubelet says of pods when its node shuts down.
const (
	reasonShutdown  = "Terminated"
	messageShutdown = "Pod was terminated in response to imminent node shutdown."
	reasonRefused   = "NodeShutdown"
	messageRefused  = "Pod was rejected as the node is shutting down."
)

// PodFailure is the node's own decision that a pod has failed. It is published
// when the pod has stopped.
type PodFailure struct {
	Reason  string
	Message string
	// Grace caps the grace period, in seconds; nil: the pod has its own.
	Grace *int64
	// Disrupted says that the pod did nothing wrong: with its end it gets the
	// condition DisruptionTarget, so that a Job does not count it as a failure.
	Disrupted bool
	// Normal says that the end is what somebody asked for: its event is no warning.
	Normal bool
}

// nextFailure returns the failure that is to be passed on the pod now, nil if there is none: the node shuts down, or the
// pod is for another operating system, as a kubelet would say, its active deadline has passed, or the node has no room for it.
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

// untilDeadline returns how long the pod may still be active, 0 if for ever or if it is to end anyway.
func (f *Facts) untilDeadline() time.Duration {
	if f.Deadline.IsZero() || f.API == nil || Terminal(&f.API.Status) || f.Finished || f.API.DeletionTimestamp != nil || f.Failure != nil {
		return 0
	}
	return f.Deadline.Sub(f.Now)
}

// ShutDown returns the failure on a pod whose node shuts down and has time left
// for it. A failure that was passed before stays, but no longer than that.
func ShutDown(passed *PodFailure, left time.Duration) *PodFailure {
	v := PodFailure{Reason: reasonShutdown, Message: messageShutdown, Disrupted: true}
	if passed != nil {
		v = *passed
	}
	v.Normal = true
	grace := max(1, int64(left/time.Second)) // 0 would be a kill
	if v.Grace == nil || grace < *v.Grace {
		v.Grace = &grace
	}
	return &v
}

// Refuse returns the failure on a pod that comes when the node shuts down.
func Refuse() *PodFailure { return &PodFailure{Reason: reasonRefused, Message: messageRefused} }

// Started reports whether the backend may have the pod: it was asked to create
// it, now or before a restart.
func Started(pod *corev1.Pod, sent Sent) bool { return sent.Attempted || HasRun(pod) }

// StopGrace returns the grace period in seconds that a stop of the pod has: its
// own, or less by the failure.
func StopGrace(pod *corev1.Pod, v *PodFailure) int64 {
	grace := Grace(pod)
	if v != nil && v.Grace != nil {
		grace = min(grace, *v.Grace)
	}
	return grace
}

// disruption is the condition of a pod that the node ended for reasons of its own.
func disruption(v *PodFailure) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: v.Message,
	}
}
