// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"io"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// GetContainerLogs returns the log of a container.
func (r *Runtime) GetContainerLogs(_ context.Context, namespace, podName, containerName string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errdefs.NotFoundf("container %s of pod %s/%s", containerName, namespace, podName)
}

// RunInContainer runs a command in a container.
func (r *Runtime) RunInContainer(_ context.Context, namespace, podName, containerName string, _ []string, _ api.AttachIO) error {
	return errdefs.NotFoundf("container %s of pod %s/%s", containerName, namespace, podName)
}

// AttachToContainer copies between the main process of a container and attach.
func (r *Runtime) AttachToContainer(_ context.Context, namespace, podName, containerName string, _ api.AttachIO) error {
	return errdefs.NotFoundf("container %s of pod %s/%s", containerName, namespace, podName)
}

// PortForward copies between a port of a pod and stream.
func (r *Runtime) PortForward(_ context.Context, namespace, pod string, _ int32, _ io.ReadWriteCloser) error {
	return errdefs.NotFoundf("pod %s/%s", namespace, pod)
}

// GetStatsSummary returns the usage of the node and its pods.
func (r *Runtime) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource returns the metrics that metrics-server reads.
func (r *Runtime) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
