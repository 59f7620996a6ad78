// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// PodControllerConfig is the configuration of a pod controller. The first seven fields are required.
type PodControllerConfig struct {
	// PodClient writes pods: status patches and deletes, nothing else.
	PodClient corev1client.PodsGetter

	// PodInformer watches the pods. The controller handles every pod that the informer sees. Therefore limit the
	// informer to one node, or set PodEventFilterFunc.
	PodInformer corev1informers.PodInformer

	// EventRecorder records the events about pods.
	EventRecorder record.EventRecorder

	// Provider runs the pods.
	Provider PodLifecycleHandler

	// ConfigMapInformer, SecretInformer and ServiceInformer are the sources of the environment of containers.
	ConfigMapInformer corev1informers.ConfigMapInformer
	SecretInformer    corev1informers.SecretInformer
	ServiceInformer   corev1informers.ServiceInformer

	// SyncPodsFromKubernetesRateLimiter delays retries of provider calls.
	// Default: exponential per pod, 250 ms to 60 s.
	SyncPodsFromKubernetesRateLimiter workqueue.TypedRateLimiter[any]
	// SyncPodsFromKubernetesShouldRetryFunc decides on retries of provider
	// calls. Default: always, by the rate limiter.
	SyncPodsFromKubernetesShouldRetryFunc ShouldRetryFunc

	// DeletePodsFromKubernetesRateLimiter delays retries of removals from the
	// API server. Default: as above.
	DeletePodsFromKubernetesRateLimiter workqueue.TypedRateLimiter[any]
	// DeletePodsFromKubernetesShouldRetryFunc decides on retries of removals.
	// Default: always.
	DeletePodsFromKubernetesShouldRetryFunc ShouldRetryFunc

	// SyncPodStatusFromProviderRateLimiter delays retries of status writes.
	// Default: as above.
	SyncPodStatusFromProviderRateLimiter workqueue.TypedRateLimiter[any]
	// SyncPodStatusFromProviderShouldRetryFunc decides on retries of status
	// writes. Default: always.
	SyncPodStatusFromProviderShouldRetryFunc ShouldRetryFunc

	// PodEventFilterFunc reports which pods to handle. Default: all.
	PodEventFilterFunc PodEventFilterFunc

	// SkipDownwardAPIResolution passes pods to the provider with env and envFrom unchanged, as they are in the API server.
	SkipDownwardAPIResolution bool

	// NodeName is the name of the node, for live reads that the Node authorizer allows. Default: live reads are
	// by pod name only.
	NodeName string

	// OperatingSystem is the system of the node, linux or windows. A pod whose spec.os names another system
	// fails with the reason PodOSNotSupported. Default: spec.os is not checked.
	OperatingSystem string

	// NodeAllocatable returns the resources that the node can give to pods. If the provider is a capability.Declarer, pods that request
	// more than is left are rejected (OutOfcpu). It is also the value of a resourceFieldRef to a limit that the container does not set.
	// Default: such variables are left to the provider, and pods are not rejected for lack of resources.
	NodeAllocatable func() corev1.ResourceList

	// NodeAddresses returns the addresses of the node. Its internal IPs, the first of each family, are the host
	// IPs of pods for which the provider reports none. These host IPs appear in variables of the pods'
	// containers and in their status. Default: such variables are left to the provider, and such a status has no
	// host IPs.
	NodeAddresses func() []corev1.NodeAddress

	// FailUnsupported lets pods fail that need a missing feature of a capability.Declarer. Default: such pods
	// wait, so that a ReplicaSet does not create new ones forever.
	FailUnsupported bool

	// AcceptUnenforced lists the features that pods may run without, if the provider is a capability.Declarer and lacks them. An event of
	// the pod then names the fields. Nil: the features that the declaration accepts; empty: none.
	AcceptUnenforced []capability.Feature

	// PollInterval is the interval at which the node polls the pods of a provider without PodNotifier while no pod starts or stops. While a
	// pod starts or stops, the interval is one second. Default: 5 s.
	PollInterval time.Duration

	// PodVisibilityTimeout is the time after CreatePod within which GetPod and GetPods must show the pod, unless the provider reports the
	// pod earlier. A pod that is not shown within that time counts as lost. After a restart, the node also waits this long before it
	// confirms the deletion of a pod that existed before and never ran, unless the provider is a PodAuthority: the previous process may
	// have created this pod at the backend. Default: 30 s.
	PodVisibilityTimeout time.Duration

	// MissingPodsQuarantine is the time for which many pods must be missing at once, at the backend or in the API server, before the node
	// replaces, fails or deletes any of them. A single pod must be missing for the same time if the backend gives no certain answer about
	// it. Default: 5 min.
	MissingPodsQuarantine time.Duration

	// SetNodeCondition is called with the node condition that shows whether pods are in quarantine, whenever the
	// condition changes. It must return at once. Default: no call.
	SetNodeCondition func(corev1.NodeCondition)

	// ProviderCallTimeout is the timeout of a provider call. Default: 10 min.
	ProviderCallTimeout time.Duration
}
