// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReasonProviderFailed is the status reason of a pod that the provider cannot
// do what is asked for.
const ReasonProviderFailed = "ProviderFailed"

// ReasonUnsupported is the status reason of a pod, and of its waiting containers, that asks for
// what the backend does not have.
const ReasonUnsupported = "UnsupportedPodSpec"

// WaitingConfig is why a container waits whose configuration is missing or wrong, as a kubelet says.
const WaitingConfig = "CreateContainerConfigError"

// SyncError is why a pod is not where it should be; it is shown in its status
// until it is over.
type SyncError struct {
	Reason  string
	Message string
	// Container waits with WaitingReason, if that is set; "" is all containers.
	Container     string
	WaitingReason string
}

// View is what Publish decides on.
type View struct {
	API         *corev1.Pod       // nil: gone, or not this node's
	Report      *corev1.PodStatus // the provider's newest word on this UID; nil: none
	Relapsed    bool              // after the end that it reports, the provider reported the pod as running
	SyncError   *SyncError
	Failure     *PodFailure
	Stopped     bool  // the backend has confirmed the stop
	StopAsked   bool  // DeletePod was called at least once
	FinalStatus bool  // the terminal status was written already
	Attempted   bool  // CreatePod was called, or the backend had the pod
	Generation  int64 // of the spec that the backend accepted; 0: none
	// Reflected is the newest generation that what the backend tells is known to be about.
	Reflected int64
	// NoEphemeral says that the backend adds no containers to a pod that runs.
	NoEphemeral bool
	// Infeasible says, unless it is empty, why the backend does not change the resources of the pod.
	Infeasible string
	// HostIPs are those of a pod of which no others are known.
	HostIPs []corev1.HostIP
	Now     time.Time
}
