// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// AttachToContainer fails: ECS has no such request.
func (p *provider) AttachToContainer(ctx context.Context, namespace, name, _ string, _ api.AttachIO) error {
	return p.lacks(ctx, namespace, name, "attach: follow its log")
}

// lacks refuses a request that is not there, for a pod that is.
func (p *provider) lacks(ctx context.Context, namespace, name, what string) error {
	if _, err := p.GetPod(ctx, namespace, name); err != nil {
		return err
	}
	return errdefs.InvalidInputf("pod %s/%s: on Fargate there is no %s", namespace, name, what)
}

// GetStatsSummary implements nodeutil.Provider: what tasks use is in CloudWatch Container Insights, and costs for each metric.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.in.NodeName}}, nil
}

// GetMetricsResource has no metrics.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
