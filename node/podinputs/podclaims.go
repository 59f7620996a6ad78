// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodClaims finds the PersistentVolumes of pods of this node. It is safe for concurrent use.
type PodClaims interface {
	// PersistentVolume returns the PersistentVolume that is bound to a pod volume, of the kind persistentVolumeClaim or ephemeral. Only the
	// namespace, name and UID of pod are used. The error is of the kind invalid-input if the volume has no claim, and of the kind not-found
	// for a pod of another node or an ended pod. Other errors are temporary, and have a kubelet's text: for example, the claim is not bound
	// yet, or the volume belongs to another node.
	PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error)
}
