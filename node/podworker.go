// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podWorker makes the backend match the API server for each pod. It processes the sync lane, and is the only code that creates, updates and
// deletes pods at the provider.
type podWorker struct {
	*podCore
	*quarantines
	backend         *backend
	inputs          *podInputs
	skipEnv         bool
	admission       *podAdmission
	failUnsupported bool
	tracker         *podTracker
	reports         *podReports
	deadlines       *activeDeadlines
	os              string      // of the node; "": unknown
	draining        atomic.Bool // the node shuts down: no more pods are started
}

// podSync is the work on one pod in one pass of the sync lane.
type podSync struct {
	*podWorker
	key    string
	api    *corev1.Pod // at the start of the pass; nil: gone, or not a pod of this node
	facts  lifecycle.Facts
	limits lifecycle.Limits
	silent error // the error if the backend did not answer
	held   bool  // an event has reported that the pod is held back
}
