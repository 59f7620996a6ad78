// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	dto "github.com/prometheus/client_model/go"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GetStatsSummary returns the usage of the node and its pods.
func (r *Runtime) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	return &statsv1alpha1.Summary{}, nil
}

// GetMetricsResource returns the metrics that metrics-server reads.
func (r *Runtime) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
