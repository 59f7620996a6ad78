// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"io"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// GetContainerLogs returns the log of a container.
func (r *Runtime) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return r.requests.readLogs(ctx, namespace, podName, containerName, opts)
}

// RunInContainer runs a command in a container.
func (r *Runtime) RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error {
	return r.requests.runCommand(ctx, namespace, podName, containerName, cmd, attach)
}

// AttachToContainer copies between the main process of a container and attach.
func (r *Runtime) AttachToContainer(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO) error {
	return r.requests.attachContainer(ctx, namespace, podName, containerName, attach)
}

// PortForward copies between a port of a pod and stream.
func (r *Runtime) PortForward(ctx context.Context, namespace, pod string, port int32, conn io.ReadWriteCloser) error {
	return r.requests.forwardPort(ctx, namespace, pod, port, conn)
}

// GetStatsSummary returns the usage of the node and its pods.
func (r *Runtime) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	return r.usage.stats.Summary(ctx)
}

// GetMetricsResource returns the metrics for metrics-server.
func (r *Runtime) GetMetricsResource(ctx context.Context) ([]*dto.MetricFamily, error) {
	return r.usage.stats.Metrics(ctx)
}

// GetMetricsProbes returns the results of the probes of containers, for /metrics/probes.
func (r *Runtime) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	return r.prober.Metrics(ctx)
}
