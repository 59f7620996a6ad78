// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of failures. All except the last two are a kubelet's reasons.
const (
	ReasonDeadline = "DeadlineExceeded"
	ReasonWrongOS  = "PodOSNotSupported"
	ReasonLost     = "ProviderPodLost"
	ReasonRejected = "ProviderPodRejected"
)

// A kubelet's reasons and messages for pods whose node shuts down.
const (
	reasonShutdown  = "Terminated"
	messageShutdown = "Pod was terminated in response to imminent node shutdown."
	reasonRefused   = "NodeShutdown"
	messageRefused  = "Pod was rejected as the node is shutting down."
)

// PodFailure is the node's own decision that a pod has failed. It is published when the pod has stopped.
type PodFailure struct {
	Reason  string
	Message string
	// Grace caps the grace period, in seconds; nil: the pod's own grace period applies.
	Grace *int64
	// Disrupted means that the pod itself did not cause the failure. When it ends, the pod gets the condition DisruptionTarget, so that a
	// Job does not count the end as a failure.
	Disrupted bool
	// Normal means that a user requested the end, so the event is not a warning.
	Normal bool
}

// ShutDown returns the failure of a pod whose node shuts down; left is the remaining time for the pod. It keeps an earlier failure, but
// limits its grace period to left.
func ShutDown(passed *PodFailure, left time.Duration) *PodFailure {
	v := PodFailure{Reason: reasonShutdown, Message: messageShutdown, Disrupted: true}
	if passed != nil {
		v = *passed
	}
	v.Normal = true
	grace := max(1, int64(left/time.Second)) // 0 would mean an immediate kill
	if v.Grace == nil || grace < *v.Grace {
		v.Grace = &grace
	}
	return &v
}

// Lose returns the failure of a pod that the backend has lost.
func Lose() *PodFailure {
	return &PodFailure{Reason: ReasonLost, Message: "the backend no longer has the pod"}
}

// Refuse returns the failure of a pod that arrives while the node shuts down.
func Refuse() *PodFailure { return &PodFailure{Reason: reasonRefused, Message: messageRefused} }

// StopGrace returns the grace period for a stop of the pod, in seconds: the pod's own, or the shorter one of the
// failure.
func StopGrace(pod *corev1.Pod, v *PodFailure) int64 {
	grace := Grace(pod)
	if v != nil && v.Grace != nil {
		grace = min(grace, *v.Grace)
	}
	return grace
}

// isDisruption reports whether the pod failed without causing the failure itself.
func (v *PodFailure) isDisruption() bool { return v != nil && v.Disrupted }

// disruption returns the condition of a pod that the node ended for its own reasons.
func disruption(v *PodFailure) corev1.PodCondition {
	return corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: v.Message,
	}
}

// EndsWhenRejected reports whether a pod fails when the provider rejects it. A pod that is never restarted
// fails. A pod of a Job fails too, because the Job counts its failures. Any other pod waits: its controller
// might create a new pod for each failed pod, without end.
func EndsWhenRejected(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	ofJob := owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
	return ofJob || pod.Spec.RestartPolicy == corev1.RestartPolicyNever
}
