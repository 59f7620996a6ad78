// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	dto "github.com/prometheus/client_model/go"
)

// GetMetricsProbes returns the results of the probes of containers, for /metrics/probes.
func (r *Runtime) GetMetricsProbes(ctx context.Context) ([]*dto.MetricFamily, error) {
	return r.prober.Metrics(ctx)
}
