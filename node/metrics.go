// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

var (
	runningPods     = metrics.NewSum("kubelet_running_pods", "Number of pods that the backend reported as running at the last relist.")
	retryingPods    = metrics.NewSum("virtual_kubelet_pods_waiting_for_retry", "Number of pods that waited at the last relist to be tried again, because a provider call failed.")
	stuckPods       = metrics.NewSum("virtual_kubelet_pods_terminating_stuck", "Deleted pods whose grace period ended more than a minute ago and whose stop the backend has not confirmed.")
	orphansHeldBack = metrics.NewSum("virtual_kubelet_orphans_held", "Pods at the backend that nobody seems to want, held back because there are too many at once.")
	missingPods     = metrics.NewSum("virtual_kubelet_missing_pods_quarantined", "Pods that the backend lacks, held back because there are too many at once.")
	workerDuration  = metrics.NewHistogramVec("kubelet_pod_worker_duration_seconds", "Duration of one piece of work on a pod, by operation (create, update, terminating or sync).", "operation_type")
)

// podGauges are a controller's shares of the gauges.
type podGauges struct{ running, retrying, stuck, orphans, missing *metrics.Share }

func newPodGauges() podGauges {
	return podGauges{running: runningPods.Share(), retrying: retryingPods.Share(), stuck: stuckPods.Share(), orphans: orphansHeldBack.Share(), missing: missingPods.Share()}
}

// end takes back what the controller contributed.
func (g podGauges) end() {
	for _, share := range []*metrics.Share{g.running, g.retrying, g.stuck, g.orphans, g.missing} {
		share.Set(0)
	}
}

// observeWork records how long a step took since begin.
func observeWork(step lifecycle.Step, begin time.Time) {
	operation := "sync"
	switch step {
	case lifecycle.Create:
		operation = "create"
	case lifecycle.Update:
		operation = "update"
	case lifecycle.Stop, lifecycle.DeleteOrphan, lifecycle.DeleteDuplicate:
		operation = "terminating"
	default:
	}
	workerDuration.WithLabelValues(operation).Observe(time.Since(begin).Seconds())
}
