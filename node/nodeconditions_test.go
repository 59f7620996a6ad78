// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// TestOwnConditions: the conditions do not depend on the provider's reports. They are removed when they are cleared, and by the next
// daemon.
func TestOwnConditions(t *testing.T) {
	const pending, other = corev1.NodeConditionType("CertificatePending"), corev1.NodeConditionType("Other")
	condition := func(kind corev1.NodeConditionType, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Because", Message: message}
	}
	synctest.Test(t, func(t *testing.T) {
		api, p := newNodeAPI(t), &pingScript{}
		c, stop := startNode(t, p, testNode(), api)
		has := func(kind corev1.NodeConditionType) string {
			time.Sleep(2 * writeSpacing)
			synctest.Wait()
			for _, have := range api.node().Status.Conditions {
				if have.Type == kind {
					return have.Message
				}
			}
			return "none"
		}
		c.SetCondition(condition(pending, "one"))
		c.SetCondition(condition(other, "two"))
		if got := has(pending) + has(other); got != "onetwo" {
			t.Errorf("two conditions: got %s", got)
		}
		p.say(testNode())
		p.set(func(context.Context) error { return errors.New("unwell") })
		time.Sleep(time.Minute)
		if got := has(pending); got != "one" {
			t.Errorf("after a report of the provider: got %s", got)
		}
		c.SetCondition(condition(pending, strings.Repeat("x", 2000)))
		if got := has(pending); len(got) != redact.Limit {
			t.Errorf("a long message has %d bytes", len(got))
		}
		c.ClearCondition(pending)
		if got := has(pending) + has(other); got != "nonetwo" {
			t.Errorf("when one is cleared: got %s", got)
		}
		stop()
		startNode(t, p, testNode(), api)
		if got := has(other); got != "none" {
			t.Errorf("with the next daemon: got %s", got)
		}
	})
}
