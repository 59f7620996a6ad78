// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodClaims finds the PersistentVolumes of pods of this node. It can be used from any goroutine.
type PodClaims interface {
	// PersistentVolume returns the bound volume of a volume of the pod with that name, of the kind
	// persistentVolumeClaim or ephemeral. Of the pod only namespace, name and UID count. A volume without a
	// claim is an error of the kind invalid-input. A pod of another node, or an ended pod, is an error of the
	// kind not-found. Other errors pass, and have a kubelet's text: for example, the claim is not bound yet, or
	// the volume is another node's.
	PersistentVolume(ctx context.Context, pod *corev1.Pod, volume string) (*corev1.PersistentVolume, error)
}
