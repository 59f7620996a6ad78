// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"io"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Provider is the interface of a backend for a whole node: it runs pods, and answers a kubelet's requests.
//
// The methods for requests may be called at any time and concurrently. An error of a kind in package errdefs
// chooses the HTTP status: not-found is 404, invalid-input 400, any other 500. ctx ends when the caller has
// gone.
type Provider interface {
	node.PodLifecycleHandler

	// GetContainerLogs returns the log of a container. The caller closes it.
	GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error)

	// RunInContainer runs a command in a container and copies between the command and attach until the command
	// has ended. A command that ran and failed is an error with an exit status (k8s.io/utils/exec.ExitError).
	RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error

	// AttachToContainer copies between the main process of a container and attach.
	AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error

	// GetStatsSummary returns the usage of the node and its pods.
	GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error)

	// GetMetricsResource returns the metrics for metrics-server.
	GetMetricsResource(context.Context) ([]*dto.MetricFamily, error)

	// PortForward copies between a port of a pod and stream.
	PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error
}

// ProbeMetricsProvider is an optional ability of a provider with probes of its own, as in a kubelet.
type ProbeMetricsProvider interface {
	// GetMetricsProbes returns the metrics of /metrics/probes, under a kubelet's names. It may be called at any
	// time and concurrently.
	GetMetricsProbes(context.Context) ([]*dto.MetricFamily, error)
}

// ProviderConfig has the inputs for a new provider.
//
// The listers answer once Run has started. Pods has the pods of this node, each without the fields that it runs
// without, as in the calls of the provider. ConfigMaps and Secrets are read one by one as the pods of this node
// name them. Listing them starts a watch on all of the cluster's, which needs the permission and the memory for
// it.
type ProviderConfig struct {
	Pods       corev1listers.PodLister
	ConfigMaps corev1listers.ConfigMapLister
	Secrets    corev1listers.SecretLister
	Services   corev1listers.ServiceLister
	// Listed reports whether Pods and Services are complete. Run of the node fills them while the provider
	// already runs in the background: before Listed is true, an object may exist that they lack.
	Listed func() bool
	// Node is the node to register. The provider may change it until NewProviderFunc returns, and must not
	// afterwards.
	Node *corev1.Node
	// Recorder records events about pods as a kubelet does, from the component kubelet on this node, without the
	// secrets of the pod in the message. It works while Run of the node does; earlier events are dropped.
	Recorder record.EventRecorder
	// APIServer is the host and port of the API server from the node, for providers of pods with another address
	// of it. It is "" if the API server is behind a proxy or a path, or if the program's client does not reveal
	// it.
	APIServer string
}

// NewProviderFunc makes the provider of a node. NewNode calls it once, after all options. A nil NodeProvider is
// replaced by a healthy provider, and the node is Ready as soon as both controllers are. An error ends NewNode.
type NewProviderFunc func(ProviderConfig) (Provider, node.NodeProvider, error)
