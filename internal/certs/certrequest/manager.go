// SPDX-License-Identifier: Apache-2.0

// Package certrequest requests a certificate from the API server, and renews it before it expires.
//
// The guarantee: a certificate is renewed after 70 to 90 % of its lifetime, and as soon as it lacks a required name. After a denied, failed or
// removed request, the manager creates another request. The last good certificate stays in use until it expires, and is never replaced by a fallback.
//
// Note: the manager waits for an undecided request as long as the request exists. So an administrator can approve it by its name, and
// requests do not accumulate. Unlike the manager of client-go, it leaves no goroutines after Run.
package certrequest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
)

const (
	// patience is the time after which the manager reports a waiting request: an automatic approver is faster.
	patience = 10 * time.Second
	// firstRetry and maxRetry bound the pauses after a failed or denied request.
	firstRetry = 2 * time.Second
	maxRetry   = 2 * time.Minute
	// maxNap bounds the timers of Run, because timers stop while a machine sleeps.
	maxNap = time.Minute
)

// Config describes the required certificate. All fields except Renew are required.
type Config struct {
	// Signer is the signer of the request, for Usages.
	Signer string
	Usages []certificatesv1.KeyUsage
	// Template returns the required content of the certificate, or nil if there is nothing to request yet. The manager calls it again after Changed.
	Template func() *x509.CertificateRequest
	// Client returns the client for requests; hasCurrent reports whether there is a valid certificate.
	Client func(hasCurrent bool) (kubernetes.Interface, error)
	// Store stores the certificate.
	Store certificate.Store
	// Tell is called from Run whenever the state changes. It must return at once.
	Tell func(context.Context, State)
	// Metrics are shared by all managers of one kind.
	Metrics *Metrics
	// Renew returns the time to replace a certificate. Default: a random time after 70 to 90 % of its lifetime.
	Renew func(*x509.Certificate) time.Time
}

// Manager manages one certificate and keeps it valid while Run is running.
type Manager struct {
	cfg      Config
	changed  chan struct{}
	obtained chan struct{} // closed when there is a valid certificate and Tell was called

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu; with its Leaf

	// Owned by Run.
	renewAt time.Time
	asked   *x509.CertificateRequest // the template of current; nil after a restart
	told    State
}

// New returns a manager with the certificate of the store. An error means that the store cannot be used.
func New(cfg Config) (*Manager, error) {
	k := &Manager{cfg: cfg, changed: make(chan struct{}, 1), obtained: make(chan struct{})}
	stored, err := cfg.Store.Current()
	var none *certificate.NoCertKeyError
	switch {
	case errors.As(err, &none):
	case err != nil:
		return nil, fmt.Errorf("read stored certificate: %w", err)
	case stored.Leaf != nil && time.Now().Before(stored.Leaf.NotAfter) && matchesSubject(stored.Leaf, cfg.Template()):
		k.useCertificate(stored, time.Time{})
		k.releaseWaiters()
	}
	return k, nil
}

// matchesSubject reports whether leaf has the subject of template. A certificate of another node, or of another
// name, may be in the same store.
func matchesSubject(leaf *x509.Certificate, template *x509.CertificateRequest) bool {
	return template == nil || leaf.Subject.CommonName == template.Subject.CommonName
}

// renewAt returns a random time, so that the nodes of a cluster do not renew all at once. It is never before earliest: with a signer that backdates
// certificates, requests would repeat without a pause.
func renewAt(leaf *x509.Certificate, earliest time.Time) time.Time {
	life := float64(leaf.NotAfter.Sub(leaf.NotBefore))
	at := leaf.NotBefore.Add(time.Duration(life * (0.7 + 0.2*rand.Float64())))
	if at.Before(earliest) {
		return earliest
	}
	return at
}

// Current returns the certificate, or nil if there is none or it has expired.
func (m *Manager) Current() *tls.Certificate {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil || !time.Now().Before(m.current.Leaf.NotAfter) {
		return nil
	}
	return m.current
}

// Obtained returns a channel that is closed after the first certificate. For a requested certificate, Tell has been called before, so callers see its
// effects.
func (m *Manager) Obtained() <-chan struct{} { return m.obtained }

// Changed makes Run check the template again.
func (m *Manager) Changed() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// useCertificate uses cert from now on, and renews it at earliest or later.
func (m *Manager) useCertificate(cert *tls.Certificate, earliest time.Time) {
	m.mu.Lock()
	m.current = cert
	m.mu.Unlock()
	if m.renewAt = renewAt(cert.Leaf, earliest); m.cfg.Renew != nil {
		m.renewAt = m.cfg.Renew(cert.Leaf)
	}
}

// releaseWaiters releases callers that wait for a certificate.
func (m *Manager) releaseWaiters() {
	select {
	case <-m.obtained:
	default:
		close(m.obtained)
	}
}

// Run keeps the certificate valid until ctx ends, and returns the error of ctx.
func (m *Manager) Run(ctx context.Context) error {
	defer m.cfg.Metrics.trackManager(m)()
	retry := newRetry()
	for ctx.Err() == nil {
		template := m.cfg.Template()
		current := m.Current()
		switch {
		case template == nil:
			m.reportState(ctx, State{Reason: Nameless})
			m.wait(ctx, time.Time{})
			continue
		case current != nil && m.isSatisfied(current.Leaf, template) && time.Now().Before(m.renewAt):
			m.reportState(ctx, State{Reason: Granted})
			m.releaseWaiters()
			m.wait(ctx, limitNap(m.renewAt))
			continue
		}
		err := m.requestCertificate(ctx, template)
		switch {
		case err == nil:
			retry = newRetry()
		case errors.Is(err, errOtherTemplate): // the template may change often
			m.wait(ctx, time.Now().Add(retry.Step()))
		case ctx.Err() == nil:
			m.cfg.Metrics.countFailure()
			m.reportState(ctx, stateOf(err))
			m.wait(ctx, time.Now().Add(retry.Step()))
		}
	}
	return ctx.Err()
}

// limitNap returns at or an earlier time, because timers stop while a machine sleeps.
func limitNap(at time.Time) time.Time {
	if limit := time.Now().Add(maxNap); limit.Before(at) {
		return limit
	}
	return at
}

func newRetry() *wait.Backoff {
	return &wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.2, Steps: 100, Cap: maxRetry}
}

// wait waits until at (for ever if at is zero), or until a change.
func (m *Manager) wait(ctx context.Context, at time.Time) {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-due:
	case <-m.changed:
	}
}

// isSatisfied reports whether leaf has the content of template. A certificate that was requested with the same template satisfies it even if the
// signer changed the content, because another request would give the same result.
func (m *Manager) isSatisfied(leaf *x509.Certificate, template *x509.CertificateRequest) bool {
	return m.asked != nil && equalTemplates(m.asked, template) || coversTemplate(leaf, template)
}
