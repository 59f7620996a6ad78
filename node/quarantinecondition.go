// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// NodePodsMissing is the condition of a node that is True while many pods are missing at once, at the backend or in
// the API server, and the node holds back what it would do about it. It is there from the first time on.
const NodePodsMissing corev1.NodeConditionType = "PodsMissing"

// useQuarantines makes the quarantines of both sides, which tell the node.
func (c *PodController) useQuarantines(cfg *PodControllerConfig) {
	c.setNodeCondition = cfg.SetNodeCondition
	c.orphans = newQuarantine("the API server", cfg.MissingPodsQuarantine, c.gauges.held, c.tellMissing)
	c.lost = newQuarantine("the backend", cfg.MissingPodsQuarantine, c.gauges.missing, c.tellMissing)
}

// tellMissing tells the node, the log and, when doubt begins, an event whether pods are in quarantine.
func (c *PodController) tellMissing(ctx context.Context) {
	c.missingMu.Lock() // also for the reading: the last to tell must tell how it is
	defer c.missingMu.Unlock()
	now := time.Now()
	var messages []string
	for _, q := range []*quarantine{c.orphans, c.lost} {
		if m := q.message(now); m != "" {
			messages = append(messages, m)
		}
	}
	message := strings.Join(messages, "; ")
	condition := corev1.NodeCondition{Type: NodePodsMissing, Status: corev1.ConditionFalse, Reason: "NoDoubt",
		Message: "no pods are held back"}
	if message != "" {
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "ManyAtOnce", message
	}
	before := c.missingTold
	if c.missingTold = message; before == message {
		return
	}
	logger := log.G(ctx)
	if message == "" {
		logger.Info("no pods are held back any more")
	} else {
		logger.Error(message)
		if c.nodeName != "" && before == "" {
			// As a kubelet refers to its node: by name, also as the UID.
			c.recorder.Event(&corev1.ObjectReference{Kind: "Node", Name: c.nodeName, UID: types.UID(c.nodeName)}, corev1.EventTypeWarning, eventPodsMissing, message)
		}
	}
	if c.setNodeCondition != nil {
		c.setNodeCondition(condition)
	}
}
