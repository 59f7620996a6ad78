// SPDX-License-Identifier: Apache-2.0

package node

import "github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"

// Reasons of the pod events that users and tests look for.
const (
	eventCreateFailed  = "ProviderCreateFailed"
	eventCreateSuccess = "ProviderCreateSuccess"
	eventUpdateFailed  = "ProviderUpdateFailed"
	eventUpdateSuccess = "ProviderUpdateSuccess"
	eventDeleteFailed  = "ProviderDeleteFailed"
	eventDeleteSuccess = "ProviderDeleteSuccess"
	eventCallHangs     = "ProviderCallHangs"
	eventPodLost       = lifecycle.ReasonLost
	eventRejected      = lifecycle.ReasonRejected
	eventUnenforced    = "UnenforcedPodSpec"
	eventSecondPod     = "ProviderSecondPod"
	eventPodsMissing   = "PodsMissing" // of the node
	eventStatusFailed  = "ProviderStatusRejected"
	// as a kubelet names them
	eventDeadline   = lifecycle.ReasonDeadline
	eventWrongOS    = lifecycle.ReasonWrongOS
	eventFailedSync = "FailedSync"
)
