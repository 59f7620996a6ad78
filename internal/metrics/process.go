// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Process gathers the metrics of the process. A program with its own registry for the metrics of the process and of its Kubernetes client sets
// Process before it serves metrics.
var Process prometheus.Gatherer = newProcess()

func newProcess() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
