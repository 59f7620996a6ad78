// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"io"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// polled is a complete provider with a backend in memory, without the ability node.PodNotifier. changed is
// raised after each change of the backend.
type polled struct {
	*memory.Backend
	noRequests
	changed *signal
}

func (p polled) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.CreatePod(ctx, pod)
}

func (p polled) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.UpdatePod(ctx, pod)
}

func (p polled) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.DeletePod(ctx, pod)
}

// notifying is polled with NotifyPods.
type notifying struct{ polled }

func (p notifying) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	memory.Notifying{Backend: p.Backend}.NotifyPods(ctx, func(pod *corev1.Pod) {
		defer p.changed.raise()
		notify(pod)
	})
}

// noRequests answers no requests to the node's server.
type noRequests struct{}

var errNoRequests = errdefs.InvalidInput("the backend of this test answers no requests")

func (noRequests) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errNoRequests
}

func (noRequests) RunInContainer(context.Context, string, string, string, []string, api.AttachIO) error {
	return errNoRequests
}

func (noRequests) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errNoRequests
}

func (noRequests) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return nil, errNoRequests
}

func (noRequests) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, errNoRequests
}

func (noRequests) PortForward(context.Context, string, string, int32, io.ReadWriteCloser) error {
	return errNoRequests
}
