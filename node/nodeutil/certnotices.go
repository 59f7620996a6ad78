// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certrequest"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// Conditions of a node while a required certificate is not granted. Their reason is Pending, Denied, NoAddress
// or Failed. Their message tells the user what to do. The conditions disappear when the certificate is granted.
const (
	ServingCertificatePending corev1.NodeConditionType = "ServingCertificatePending"
	ClientCertificatePending  corev1.NodeConditionType = "ClientCertificatePending"
)

// certNotices report the state of a certificate to users in the log and, once the node exists, by a condition and events.
type certNotices struct {
	what    string // serving or client
	kind    corev1.NodeConditionType
	without string // the features that need the certificate

	mu     sync.Mutex
	node   *node.NodeController // guarded by mu; nil until attach
	events record.EventRecorder // guarded by mu
	about  *corev1.ObjectReference
	last   certrequest.State // guarded by mu
}

// attach shows the current state and later states in the Node object and in its events.
func (c *certNotices) attach(name string, n *node.NodeController, events record.EventRecorder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node, c.events = n, events
	// A kubelet uses the node name as the UID, and kubectl describe searches for this UID.
	c.about = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
	c.show(c.last)
}

// tell reports a new state. It is the function for certrequest.Config.Tell.
func (c *certNotices) tell(ctx context.Context, s certrequest.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.last.Reason
	c.last = s
	c.show(s)
	logger := log.G(ctx).WithField("certificate", c.what)
	pending := old != "" && old != certrequest.Granted
	switch {
	case s.Reason == certrequest.Granted && pending:
		logger.Info("The " + c.what + " certificate was granted")
		c.event(corev1.EventTypeNormal, "CertificateGranted", "The "+c.what+" certificate was granted")
	case s.Reason == certrequest.Granted:
		logger.WithField("expires", s.Expires.UTC().Format(time.RFC3339)).Debug("The certificate is good")
	case s.Reason == old: // the reason was already reported
		logger.Debug(c.message(s))
	default:
		logger.Warn(c.message(s))
		c.event(corev1.EventTypeWarning, "Certificate"+string(s.Reason), c.message(s))
	}
}

// show sets or clears the condition of the state. The caller holds mu.
func (c *certNotices) show(s certrequest.State) {
	switch {
	case c.node == nil || s.Reason == "":
	case s.Reason == certrequest.Granted:
		c.node.ClearCondition(c.kind)
	default:
		c.node.SetCondition(corev1.NodeCondition{
			Type: c.kind, Status: corev1.ConditionTrue, Reason: string(s.Reason), Message: c.message(s),
		})
	}
}

// event records an event about the node. The caller holds mu.
func (c *certNotices) event(kind, reason, message string) {
	if c.events != nil {
		c.events.Event(c.about, kind, reason, message)
	}
}

// message describes the problem, its consequence, and the action to take.
func (c *certNotices) message(s certrequest.State) string {
	until := fmt.Sprintf("the certificate in use ends at %s", s.Expires.UTC().Format(time.RFC3339))
	if s.Expires.IsZero() {
		until = "until then " + c.without
	}
	switch s.Reason {
	case certrequest.Pending:
		return fmt.Sprintf("the request for a %s certificate is not approved; if it is right, run: kubectl certificate approve %s (%s)", c.what, s.Request, until)
	case certrequest.Nameless:
		return fmt.Sprintf("the node has no address that a %s certificate could be for; give it one (%s)", c.what, until)
	case certrequest.Denied:
		return fmt.Sprintf("%v; another request for a %s certificate follows: look why it is denied, or run kubectl certificate approve for the next one (%s)", s.Err, c.what, until)
	}
	return fmt.Sprintf("a %s certificate cannot be had: %v; trying again (%s)", c.what, s.Err, until)
}
