// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodObjects reads objects for pods of this node. It is safe for concurrent use, and works as soon as pods exist, for example in CreatePod.
// The values of Secrets read for a pod are removed from all later messages about the pod.
type PodObjects interface {
	// ConfigMap returns a ConfigMap in the namespace of the pod. It is shared: copy it before changing it. If it does not exist,
	// apierrors.IsNotFound is true for the error. Any other error means that it is unknown whether the ConfigMap exists.
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	// Secret is like ConfigMap, for a Secret.
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
	// Container returns a copy of the container called name, of any kind, with its environment resolved, and command and args expanded. The
	// addresses come from the status of pod. A variable for a missing address keeps its ValueFrom. The error names the missing object, and
	// may be shown in the status of the container.
	Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error)
}
