// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

var (
	runningPods    = metrics.NewGauge("kubelet_running_pods", "Number of pods that the backend reported as running at the last survey.")
	retryingPods   = metrics.NewGauge("virtual_kubelet_pods_waiting_for_retry", "Number of pods that waited at the last survey to be tried again, because a provider call failed.")
	workerDuration = metrics.NewHistogramVec("kubelet_pod_worker_duration_seconds", "Duration of one piece of work on a pod, by operation (create, update, terminating or sync).", "operation_type")
)

// observeWork records how long a step took since begin.
func observeWork(step lifecycle.Step, begin time.Time) {
	operation := "sync"
	switch step {
	case lifecycle.Create, lifecycle.Lost:
		operation = "create"
	case lifecycle.Update:
		operation = "update"
	case lifecycle.Stop, lifecycle.Orphan:
		operation = "terminating"
	default:
	}
	workerDuration.WithLabelValues(operation).Observe(time.Since(begin).Seconds())
}
