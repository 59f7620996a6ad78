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

	relistDuration = metrics.NewHistogram("kubelet_pleg_relist_duration_seconds", "Duration of a list of the pods of the backend.",
		0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
	relistInterval = metrics.NewHistogram("kubelet_pleg_relist_interval_seconds", "Time between two lists of the pods of the backend.",
		0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60, 120)
	nodeReady = metrics.NewGauge("virtual_kubelet_node_ready",
		"1 while the node is to be Ready, by the provider's Ping and the conditions that it reports, else 0.", metrics.Least, "node")
	nodeLeader = metrics.NewGauge("virtual_kubelet_node_leader",
		"1 while this process acts for the node, 0 while it stands by for another one.", metrics.Least, "node")
	pingFailures = metrics.NewCounter("virtual_kubelet_provider_ping_failures_total",
		"Pings of the provider that failed, panicked or timed out.")
	nodeRegistrations = metrics.NewCounter("virtual_kubelet_node_registrations_total",
		"Times the node object was created, at first or because it was deleted.")
	nodeWriteFailures = metrics.NewCounter("virtual_kubelet_node_write_failures_total",
		"Attempts to register or update the node object that failed.")
	leaseRenewFailures = metrics.NewCounter("virtual_kubelet_node_lease_renew_failures_total",
		"Attempts to renew the node lease that failed.")
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
