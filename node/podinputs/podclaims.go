// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodClaims finds the PersistentVolumes of pods of this node. It can be used from any goroutine.
type PodClaims interface {
	// PersistentVolume returns what a volume of the pod, by its name there, is bound to: one of the kind
	// persistentVolumeClaim or ephemeral. Of the pod only namespace, name and UID count; a volume that claims nothing is an
	// error of the kind invalid-input, and a pod that is not this node's, or has ended, one of the kind not-found. Other
	// errors say as a kubelet does what is missing, and pass: the claim is not bound yet, for example, or the
	// volume is another node's.
	PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error)
}
