// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"context"
	"errors"
	"time"
)

// Reason is the state of a certificate, as the reason of a condition.
type Reason string

const (
	// Granted means that there is a certificate, and no other certificate is needed.
	Granted Reason = "Granted"
	// Nameless means that there is nothing to request yet.
	Nameless Reason = "NoAddress"
	// Pending means that a request has waited for approval for some time.
	Pending Reason = "Pending"
	// Denied means that a request was denied. Another request follows.
	Denied Reason = "Denied"
	// Failed means that a request could not be made, or failed.
	Failed Reason = "Failed"
)

// State is the state of a certificate.
type State struct {
	Reason Reason
	// Request is the name of the CertificateSigningRequest, if there is one.
	Request string
	// Err is the error.
	Err error
	// Expires is the expiry of the current certificate, or zero if there is none.
	Expires time.Time
}

// stateOf returns the state after a request with the error err.
func stateOf(err error) State {
	s := State{Reason: Failed, Err: err}
	var refused *refusal
	if errors.As(err, &refused) {
		s.Reason, s.Request = refused.reason, refused.request
	}
	return s
}

// reportState calls Tell if the state has changed.
func (m *Manager) reportState(ctx context.Context, s State) {
	if current := m.Current(); current != nil {
		s.Expires = current.Leaf.NotAfter
	}
	old := m.told
	sameErr := (s.Err == nil) == (old.Err == nil) && (s.Err == nil || s.Err.Error() == old.Err.Error())
	if s.Reason == old.Reason && s.Request == old.Request && s.Expires.Equal(old.Expires) && sameErr {
		return
	}
	m.told = s
	m.cfg.Tell(ctx, s)
}
