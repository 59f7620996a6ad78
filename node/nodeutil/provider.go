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
// The methods for requests may be called at any time and concurrently. The error kind, see package errdefs, determines the HTTP status: 404
// for not-found, 400 for invalid-input, else 500. ctx ends when the caller disconnects.
type Provider interface {
	node.PodLifecycleHandler

	// GetContainerLogs returns the log of a container. The caller closes it.
	GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error)

	// RunInContainer runs a command in a container and copies between the command and attach until the command has ended. If the command
	// fails, it returns an error with an exit status (k8s.io/utils/exec.ExitError).
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

// ProbeMetricsProvider is an optional ability of a provider that probes containers itself, as a kubelet does.
type ProbeMetricsProvider interface {
	// GetMetricsProbes returns the metrics of /metrics/probes, with a kubelet's names. It may be called at any time and concurrently.
	GetMetricsProbes(context.Context) ([]*dto.MetricFamily, error)
}

// ProviderConfig has the inputs for a new provider.
//
// The listers work once Run has started. Pods has the pods of this node in the form that the provider receives, without accepted
// unsupported fields. ConfigMaps and Secrets are read one by one when the pods of this node refer to them. Listing them starts a watch of
// all objects in the cluster, which needs the permission and memory for them.
type ProviderConfig struct {
	Pods       corev1listers.PodLister
	ConfigMaps corev1listers.ConfigMapLister
	Secrets    corev1listers.SecretLister
	Services   corev1listers.ServiceLister
	// Listed reports whether Pods and Services are complete. Run fills them while background work of the provider already runs: before
	// Listed returns true, they may lack existing objects.
	Listed func() bool
	// Node is the node to register. The provider may change it until NewProviderFunc returns, and must not
	// afterwards.
	Node *corev1.Node
	// Recorder records events about pods as a kubelet does, from the component kubelet on this node, without the secrets of the pod in the
	// message. It works during Run; earlier events are dropped.
	Recorder record.EventRecorder
	// APIServer is the host and port of the API server as seen from the node, for providers whose pods reach it at another address. It is
	// "" if the API server is behind a proxy or a path, or if the program's client does not reveal it.
	APIServer string
}

// NewProviderFunc creates the provider of a node. NewNode calls it once, after all options. A nil NodeProvider is replaced by a provider
// that is always healthy, and the node is Ready when both controllers are. If it returns an error, NewNode fails.
type NewProviderFunc func(ProviderConfig) (Provider, node.NodeProvider, error)
