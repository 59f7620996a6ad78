// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

var (
	runningPods     = metrics.NewGauge("kubelet_running_pods", "Number of pods that run, by the statuses that the backend has reported.", metrics.Sum)
	retryingPods    = metrics.NewGauge("virtual_kubelet_pods_waiting_for_retry", "Number of pods that wait to be tried again, because a provider call failed.", metrics.Sum, "node")
	stuckPods       = metrics.NewGauge("virtual_kubelet_pods_terminating_stuck", "Deleted pods whose grace period ended more than a minute ago and whose stop the backend has not confirmed.", metrics.Sum, "node")
	orphansHeldBack = metrics.NewGauge("virtual_kubelet_orphans_held", "Pods at the backend that are missing in the API server, held back because there are too many at once.", metrics.Sum, "node")
	missingPods     = metrics.NewGauge("virtual_kubelet_missing_pods_quarantined", "Pods that the backend lacks, held back because there are too many at once.", metrics.Sum, "node")
	queueDepth      = metrics.NewGauge("virtual_kubelet_queue_depth", "Number of pods that wait for a worker, by queue: sync (towards the provider), status (towards the API server) or poll (asked for their status).", metrics.Sum, "queue")
	queueOldest     = metrics.NewGauge("virtual_kubelet_queue_oldest_seconds", "For how long the pod that waits longest has waited for a worker, by queue.", metrics.Greatest, "queue")
	syncErrors      = metrics.NewCounterVec("virtual_kubelet_pod_sync_errors_total", "Failures of work on pods, by kind: not_found, invalid_input, retry_after (the backend has named a time), timeout, panic, not_ready (a ConfigMap or Secret is missing) or other.", "kind")
	workerDuration  = metrics.NewHistogramVec("kubelet_pod_worker_duration_seconds", "Duration of one piece of work on a pod, by operation (create, update, terminating or sync).", "operation_type")
)

// countSyncError counts a failure of the sync lane by its kind.
func countSyncError(err error) {
	var panicked *providercall.Panic
	var notReady *podenv.NotReadyError
	kind := "other"
	switch _, waits := errdefs.RetryAfterOf(err); {
	case errors.As(err, &panicked):
		kind = "panic"
	case errors.As(err, &notReady):
		kind = "not_ready"
	case errdefs.IsNotFound(err):
		kind = "not_found"
	case errdefs.IsInvalidInput(err):
		kind = "invalid_input"
	case waits:
		kind = "retry_after"
	case errors.Is(err, context.DeadlineExceeded):
		kind = "timeout"
	}
	syncErrors.WithLabelValues(kind).Inc()
}

// observeWork records the duration of a step since begin.
func observeWork(step lifecycle.Step, begin time.Time) {
	operation := "sync"
	switch step {
	case lifecycle.Create:
		operation = "create"
	case lifecycle.Update:
		operation = "update"
	case lifecycle.Stop, lifecycle.DeleteOrphan:
		operation = "terminating"
	default:
	}
	workerDuration.WithLabelValues(operation).Observe(time.Since(begin).Seconds())
}
