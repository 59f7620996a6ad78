// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"io"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// NoRequests answers no request to the node's server, such as logs and exec. With a Backend, it makes a complete provider.
type NoRequests struct{}

var errNoRequests = errdefs.InvalidInput("the backend of this test answers no requests")

// GetContainerLogs refuses every request.
func (NoRequests) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errNoRequests
}

// RunInContainer refuses every request.
func (NoRequests) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errNoRequests
}

// AttachToContainer refuses every request.
func (NoRequests) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errNoRequests
}

// GetStatsSummary refuses every request.
func (NoRequests) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return nil, errNoRequests
}

// GetMetricsResource refuses every request.
func (NoRequests) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, errNoRequests
}

// PortForward refuses every request.
func (NoRequests) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNoRequests
}
