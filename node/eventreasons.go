// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

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
	eventHeldBack      = "PodHeldBack"
	eventStatusFailed  = "ProviderStatusRejected"
	// a kubelet's names
	eventDeadline   = lifecycle.ReasonDeadline
	eventWrongOS    = lifecycle.ReasonWrongOS
	eventFailedSync = "FailedSync"
)

// nodeRef returns the reference that a kubelet uses for its node: the name is also the UID.
func nodeRef(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", Name: name, UID: types.UID(name)}
}
