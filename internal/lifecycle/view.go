// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReasonProviderFailed is the status reason of a pod for which the provider cannot do the requested work.
const ReasonProviderFailed = "ProviderFailed"

// ReasonUnsupported is the status reason of a pod that needs a feature that the backend lacks. Its waiting
// containers have the same reason.
const ReasonUnsupported = "UnsupportedPodSpec"

// WaitingConfig is a kubelet's waiting reason of a container whose configuration is missing or wrong.
const WaitingConfig = "CreateContainerConfigError"

// SyncError is the reason why a pod is not in its desired state. The pod's status shows it until it is resolved.
type SyncError struct {
	Reason  string
	Message string
	// Container is the container that waits with WaitingReason, if that is set. An empty Container means all containers.
	Container     string
	WaitingReason string
}

// View is the input of Publish.
type View struct {
	API         *corev1.Pod       // nil: gone, or not a pod of this node
	Report      *corev1.PodStatus // the provider's newest report about this UID; nil: none
	Relapsed    bool              // the provider reported the pod as running after it had reported its end
	SyncError   *SyncError
	Failure     *PodFailure
	Stopped     bool  // the backend has confirmed the stop
	StopAsked   bool  // DeletePod was called at least once
	FinalStatus bool  // the terminal status was written already
	Attempted   bool  // CreatePod was called, or the backend had the pod before
	Generation  int64 // generation of the spec that the backend accepted; 0: none
	// Reflected is the newest generation that the backend's reports are known to describe.
	Reflected int64
	// NoEphemeral reports whether the backend cannot add containers to a running pod.
	NoEphemeral bool
	// Infeasible is the reason why the backend does not change the resources of the pod, or empty.
	Infeasible string
	// HostIPs are the host addresses of a pod without known addresses.
	HostIPs []corev1.HostIP
	Now     time.Time
}
