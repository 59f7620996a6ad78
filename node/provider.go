// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodLifecycleHandler is the interface that a provider must implement: it runs pods on a backend. Calls for the same pod never overlap;
// calls for different pods may.
//
// Every pod that the provider receives is a private copy: the provider may keep and change it. Pods that the provider returns are copied
// before they are used.
//
// Errors should be of the kinds in package errdefs. A failed call is retried for as long as the pod exists, with a growing delay, or after
// the delay that the error requests (errdefs.RetryAfter).
type PodLifecycleHandler interface {
	// CreatePod starts a pod on the backend. It may return before the pod runs; the status of the pod shows the progress. GetPod and
	// GetPods must show the pod within PodControllerConfig.PodVisibilityTimeout, unless the provider reports it as Pending in the meantime.
	// The given pod has no status, and its environment is resolved. A second call for a pod (same UID) that the backend already has, for
	// example after a restart, must not start it twice. An error of the kind invalid-input means that nothing was created and that this pod
	// can never be created as it is. A pod of a Job, or a pod that is never restarted, then fails with the error as its message.
	CreatePod(ctx context.Context, pod *corev1.Pod) error

	// UpdatePod is called after writers other than the provider have changed the spec, the labels or the annotations of a pod at the
	// backend. The given pod contains the provider's own reported changes of labels and annotations. Its status is the status that the
	// provider reported last.
	//
	// If UpdatePod fails, the pod continues unchanged: an event shows the error, and the status remains the provider's. If the backend does
	// not have the pod (for example because another UID has its name), UpdatePod returns an error of the kind not-found. The node then
	// requests the status of the pod, and retries.
	//
	// UpdatePod may return before the change is complete; the status shows the progress, for example with the condition
	// PodResizeInProgress. A change of the spec counts as observed (status.observedGeneration) when the provider has reported the pod with
	// its metadata.generation. It also counts when GetPodStatus, which is called then, agrees with the last report. A container that the
	// change replaces has another container ID afterwards, or a higher restart count: these distinguish a report about the new container
	// from a late report about the old one.
	UpdatePod(ctx context.Context, pod *corev1.Pod) error

	// DeletePod stops a pod, within the grace period in pod.DeletionGracePeriodSeconds. It may return before the pod has stopped. The stop
	// is confirmed by a report, or by GetPod if it no longer returns the pod or returns it as Succeeded or Failed. DeletePod is called
	// again if a stop request changes, and until the pod has stopped.
	//
	// DeletePod acts on the UID: it must not stop a pod with the same name and another UID. If a UID has several instances, it acts on the
	// instance with the container IDs in the pod's status. If the backend does not have the pod, it returns an error of the kind not-found,
	// and the pod counts as stopped unless GetPods still returns it.
	DeletePod(ctx context.Context, pod *corev1.Pod) error

	// GetPod returns a pod of the backend, with its status. For a pod that the backend does not have, it returns nil or an error of the
	// kind not-found. After any other error except a timeout, GetPods decides, if it returns any pods. If it returns none, the pod counts
	// as missing only after GetPods has returned none for PodControllerConfig.MissingPodsQuarantine. If the backend has several pods of the
	// name, GetPod returns the running one.
	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)

	// GetPodStatus returns the status of a pod of the backend. For a pod that the backend does not have, it
	// returns nil or an error of the kind not-found.
	GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error)

	// GetPods returns all pods of the backend for this node. A partial list must be an error. The pods should carry their UID. A pod counts
	// as lost only if a list lacks it. A result after more than 45 s is dropped; in the meantime GetPodStatus is called for each pod.
	GetPods(context.Context) ([]*corev1.Pod, error)
}

// PodEventFilterFunc reports whether the pod controller handles a pod. It is called for every event about the pod, and must be fast.
type PodEventFilterFunc func(context.Context, *corev1.Pod) bool
