// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// cgroupsEvery is the interval of checks for pods at a limit.
	cgroupsEvery = 10 * time.Second
	// reasonPids is the reason of the event for a pod at its limit of processes.
	reasonPids = "PidsLimitReached"
)

// cgroupWatcher reports pods at their limit of processes, and counts the pods of an earlier process.
type cgroupWatcher struct {
	cgroups cgroups
	workers *workers
	lists   *lists
	events  events
}

// run watches until ctx ends.
func (c *cgroupWatcher) run(ctx context.Context) {
	if c.cgroups.tree == nil {
		return
	}
	// An earlier process that ended after New has removed the tree if it had no pods.
	if err := c.cgroups.tree.Prepare(c.cgroups.all); err != nil {
		log.G(ctx).WithError(err).Error("make the cgroups of pods")
	}
	select {
	case <-c.lists.first:
	case <-ctx.Done():
	}
	refused := c.cgroups.tree.Refused() // events of an earlier process are not repeated
	for ctx.Err() == nil {
		for _, w := range c.workers.allWorkers() {
			if pod := w.report.lastPod(); pod != nil && len(pod.Spec.Containers) > 0 { // otherwise the spec is not known yet
				if err := c.cgroups.accountPod(pod); err != nil {
					log.G(ctx).WithError(err).Warn("give the pods of the class Burstable their part of the CPUs; it is tried again")
				}
			}
		}
		now := c.cgroups.tree.Refused()
		for uid, n := range now {
			w := c.workers.findWorker(uid)
			if more := n - refused[uid]; more > 0 && w != nil && w.report.lastPod() != nil {
				c.events.recordPod(w.report.lastPod(), corev1.EventTypeWarning, reasonPids,
					fmt.Sprintf("Pod has as many processes and threads as it may, %d (podPidsLimit): it was refused %d more", c.cgroups.pids, more))
			}
		}
		refused = now
		select {
		case <-time.After(cgroupsEvery):
		case <-ctx.Done():
		}
	}
}
