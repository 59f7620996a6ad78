// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

// Metrics are the metrics for the certificates of one kind, with a kubelet's names.
type Metrics struct {
	ttl      *metrics.Gauge
	rotation prometheus.Histogram // nil: not measured
	failures prometheus.Counter
}

// Metrics of serving and client certificates.
var (
	Serving = &Metrics{
		ttl: metrics.NewGauge("kubelet_certificate_manager_server_ttl_seconds",
			"Seconds until the serving certificate that was asked for by CSR ends; +Inf while there is none. Of several nodes, the least.", metrics.Least),
		rotation: metrics.NewHistogram("kubelet_certificate_manager_server_rotation_seconds",
			"Seconds that serving certificates had lived when they were replaced.",
			60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000),
		failures: metrics.NewCounter("kubelet_server_expiration_renew_errors",
			"Requests for a serving certificate that failed or were denied."),
	}
	Client = &Metrics{
		ttl: metrics.NewGauge("kubelet_certificate_manager_client_ttl_seconds",
			"Seconds until the client certificate that was asked for by CSR ends; +Inf while there is none. Of several nodes, the least.", metrics.Least),
		failures: metrics.NewCounter("kubelet_certificate_manager_client_expiration_renew_errors",
			"Requests for a client certificate that failed or were denied."),
	}
)

// trackManager exports the remaining lifetime of k's certificate until the caller calls untrack.
func (m *Metrics) trackManager(k *Manager) (untrack func()) {
	return m.ttl.Track(func() float64 {
		if current := k.Current(); current != nil {
			return math.Trunc(time.Until(current.Leaf.NotAfter).Seconds())
		}
		return math.Inf(1)
	})
}

func (m *Metrics) recordRotation(after time.Duration) {
	if m.rotation != nil {
		m.rotation.Observe(after.Seconds())
	}
}

func (m *Metrics) countFailure() { m.failures.Inc() }
