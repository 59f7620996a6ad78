// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// NodePodsMissing is the condition of a node that is True while many pods are missing at once, at the backend or in the API server, and the
// node does not act on them. The condition is first set when this happens.
const NodePodsMissing corev1.NodeConditionType = "PodsMissing"

// quarantines has the quarantines of both sides, and sets the condition of the node.
type quarantines struct {
	orphans *quarantine // pods that only the backend has
	missing *quarantine // pods that the backend should have

	core             *podCore
	visibility       time.Duration              // from PodControllerConfig
	setNodeCondition func(corev1.NodeCondition) // nil: no call

	mu   sync.Mutex
	told string // guarded by mu; the last published message
}

func newQuarantines(core *podCore, cfg *PodControllerConfig) *quarantines {
	q := &quarantines{core: core, visibility: cfg.PodVisibilityTimeout, setNodeCondition: cfg.SetNodeCondition}
	q.orphans = newQuarantine("the API server", cfg.MissingPodsQuarantine, q.tellNode)
	q.missing = newQuarantine("the backend", cfg.MissingPodsQuarantine, q.tellNode)
	return q
}

// forgetAll resets both quarantines.
func (q *quarantines) forgetAll(ctx context.Context) {
	q.orphans.forgetAll(ctx, time.Now())
	q.missing.forgetAll(ctx, time.Now())
}

// visibleWithin returns the time within which the backend shows a pod after it received the pod.
func (q *quarantines) visibleWithin(api *corev1.Pod, st *podState) time.Duration {
	if st.report.matches(api.UID) && !st.sent.Shown && st.report.status.Phase == corev1.PodPending {
		return max(q.visibility, q.missing.period)
	}
	return q.visibility
}

// tellNode publishes whether pods are in quarantine: as a condition of the node, in the log, and in an event when a quarantine begins.
func (q *quarantines) tellNode(ctx context.Context) {
	q.mu.Lock() // also for reading, so that the last publication is the current state
	defer q.mu.Unlock()
	now := time.Now()
	var messages []string
	for _, side := range []*quarantine{q.orphans, q.missing} {
		if m := side.message(now); m != "" {
			messages = append(messages, m)
		}
	}
	message := strings.Join(messages, "; ")
	condition := corev1.NodeCondition{Type: NodePodsMissing, Status: corev1.ConditionFalse, Reason: "NoDoubt",
		Message: "no pods are held back"}
	if message != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "ManyAtOnce", message
	}
	before := q.told
	if q.told = message; before == message {
		return
	}
	logger := log.G(ctx)
	if message == "" {
		logger.Info("no pods are held back any more")
	} else {
		logger.Error(message)
		if q.core.nodeName != "" && before == "" {
			q.core.recorder.Event(nodeRef(q.core.nodeName), corev1.EventTypeWarning, eventPodsMissing, message)
		}
	}
	if q.setNodeCondition != nil {
		q.setNodeCondition(condition)
	}
}
