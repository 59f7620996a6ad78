// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"context"
	"errors"
	"time"
)

// Reason says how it stands with a certificate, in the form of a reason of a condition.
type Reason string

const (
	// Granted means that there is a certificate and no need for another one.
	Granted Reason = "Granted"
	// Nameless means that nothing can be asked for yet.
	Nameless Reason = "NoAddress"
	// Pending means that a request has waited for some time for somebody to approve it.
	Pending Reason = "Pending"
	// Denied means that a request was denied. Another one will be made.
	Denied Reason = "Denied"
	// Failed means that a request could not be made, or came to nothing.
	Failed Reason = "Failed"
)

// State is how it stands with a certificate.
type State struct {
	Reason Reason
	// Request is the name of the CertificateSigningRequest, if there is one.
	Request string
	// Err is what failed.
	Err error
	// Expires is when the certificate that is in use ends; zero if there is none.
	Expires time.Time
}

// stateOf returns the state after a request that ended with err.
func stateOf(err error) State {
	s := State{Reason: Failed, Err: err}
	var refused *refusal
	if errors.As(err, &refused) {
		s.Reason, s.Request = refused.reason, refused.request
	}
	return s
}

// tell passes a state on if it is news.
func (m *Manager) tell(ctx context.Context, s State) {
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
