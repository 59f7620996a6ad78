// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// PodLifecycleHandler is the interface that a provider must implement: it runs pods on a backend. Calls for one
// pod never overlap; calls for different pods do.
//
// Every pod that is handed to the provider is a private copy: the provider may keep and change it. Pods that the
// provider returns are copied before they are used.
//
// The node understands errors of the kinds in package errdefs. A failed call is tried again for as long as the
// pod exists, with a growing delay, or after the delay that the error asks for (errdefs.RetryAfter).
type PodLifecycleHandler interface {
	// CreatePod starts a pod on the backend. It may return before the pod runs; the status of the pod shows the
	// progress. GetPod and GetPods must show the pod within PodControllerConfig.PodVisibilityTimeout, unless the
	// provider reports it as Pending meanwhile. The pod that is handed in has no status, and its environment is
	// resolved. A second call for a pod (same UID) that the backend already has, after a restart for example,
	// must not start it twice. An error of the kind invalid-input means that nothing was created and that this
	// pod can never be created as it is. A pod of a Job, or a pod that is never restarted, has then failed with
	// the error's words.
	CreatePod(ctx context.Context, pod *corev1.Pod) error

	// UpdatePod is called when the spec, the labels or the annotations of a pod at the backend were changed, by
	// other writers than the provider itself. The pod that is handed in contains the provider's own reported
	// changes of labels and annotations. Its status is the status that the provider reported last.
	//
	// While UpdatePod fails, the pod runs on unchanged: an event shows the error, and the status is the
	// provider's. If the backend does not have the pod (for example because another UID has its name), UpdatePod
	// returns an error of the kind not-found. The node then asks for the status of the pod, and tries again.
	//
	// UpdatePod may return before the change is made; the status shows the progress, by the condition
	// PodResizeInProgress for example. A change of the spec counts as observed (status.observedGeneration) when
	// the provider has reported the pod with its metadata.generation. It also counts when GetPodStatus, which is
	// called then, agrees with the last report. A container that the change replaces has another container ID
	// afterwards, or a higher restart count: these distinguish a report about the new container from a late
	// report about the old one.
	UpdatePod(ctx context.Context, pod *corev1.Pod) error

	// DeletePod stops a pod, within the grace period in pod.DeletionGracePeriodSeconds. It may return before the
	// pod has stopped. Callers believe that the pod stopped when a report says so, or when GetPod no longer
	// returns it or returns it as Succeeded or Failed. DeletePod is called again if a stop request changes, and
	// until the pod has stopped.
	//
	// DeletePod acts on the UID: a pod of that name with another UID is not the pod. Of several instances of one
	// UID, it acts on the instance with the container IDs in the pod's status. A pod that the backend does not
	// have is an error of the kind not-found, and counts as stopped unless GetPods shows it all the same.
	DeletePod(ctx context.Context, pod *corev1.Pod) error

	// GetPod returns a pod of the backend, with its status. For a pod that the backend does not have, it returns
	// nil or an error of the kind not-found. After any other error but a time-out, GetPods decides, if it
	// returns any pod. If it returns none, the pod is missing only when GetPods returns none for
	// PodControllerConfig.MissingPodsQuarantine. A backend with several pods of one name returns the running
	// one.
	GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error)

	// GetPodStatus returns the status of a pod of the backend. For a pod that the backend does not have, it
	// returns nil or an error of the kind not-found.
	GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error)

	// GetPods returns all pods of the backend for this node. A partial list must be an error. The pods should
	// carry their UID. No pod counts as lost without a list that lacks it. An answer after more than 45 s is
	// dropped; meanwhile GetPodStatus is called for each pod.
	GetPods(context.Context) ([]*corev1.Pod, error)
}

// PodEventFilterFunc reports whether the pod controller handles a pod. It is called at every event about the
// pod, and must be quick.
type PodEventFilterFunc func(context.Context, *corev1.Pod) bool
