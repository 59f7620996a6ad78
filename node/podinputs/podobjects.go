// SPDX-License-Identifier: Apache-2.0

package podinputs

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodObjects reads for pods of this node. It can be used from any goroutine, as soon as
// pods are there: within CreatePod for example. What is read of Secrets for a pod is
// taken out of whatever is said about the pod later.
type PodObjects interface {
	// ConfigMap returns a ConfigMap in the namespace of the pod. It is shared: copy it before changing
	// it. One that does not exist is an error for which apierrors.IsNotFound is true; any
	// other error says nothing about it.
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	// Secret is as ConfigMap, for a Secret.
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
	// Container returns a copy of the container of that name, of any kind, with its environment
	// resolved and command and args expanded. The addresses are those in the status of pod, and
	// a variable for an address that is not there keeps its ValueFrom. The error
	// says what is missing, and is fit for the status of the container.
	Container(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Container, error)
}
