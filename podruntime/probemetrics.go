// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	dto "github.com/prometheus/client_model/go"
)

// GetMetricsProbes returns how the probes of containers went, for /metrics/probes.
func (r *Runtime) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	return r.prober.Metrics(ctx)
}
