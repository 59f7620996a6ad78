// SPDX-License-Identifier: Apache-2.0

package podcerts

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certapi"
)

const (
	// patience bounds the wait for a decision while the pod has no valid certificate. A deletion of the pod is delayed by that time.
	patience = 4 * time.Second
	// firstPause and lastPause bound the interval of checks of a request.
	firstPause = 100 * time.Millisecond
	lastPause  = time.Second
	// jitter bounds the random delay of a renewal, so that the certificates of many pods are not renewed
	// together. A kubelet has the same value.
	jitter = 5 * time.Minute
)

// asked is a request in progress.
type asked struct {
	key        crypto.Signer
	node, name string
}

// renewCertificate requests another certificate, or checks the request. The slot keeps its certificate until there is a new one.
func (m *Manager) renewCertificate(ctx context.Context, s *slot, pod *corev1.Pod, source *corev1.PodCertificateProjection) error {
	if s.refused != nil {
		return s.refused
	}
	if s.asked == nil {
		request, err := m.requestCertificate(ctx, pod, source)
		if err != nil {
			return err
		}
		s.asked = request
	}
	deadline := time.Now()
	if !s.have.isValid(deadline) {
		deadline = deadline.Add(patience)
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := m.checkRequest(ctx, s, pod)
		if err == nil || !errors.Is(err, errNotIssued) || time.Now().Add(pause).After(deadline) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// requestCertificate makes a key and a request for it.
func (m *Manager) requestCertificate(ctx context.Context, pod *corev1.Pod, source *corev1.PodCertificateProjection) (*asked, error) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	accountUID, err := m.cfg.Account(ctx, pod.Namespace, account)
	if err != nil {
		return nil, fmt.Errorf("while fetching service account: %w", err)
	}
	node, nodeUID, err := m.cfg.Node(ctx)
	if err != nil {
		return nil, fmt.Errorf("while fetching node: %w", err)
	}
	key, err := newKey(source.KeyType)
	if err != nil {
		return nil, fmt.Errorf("while generating keypair: %w", err)
	}
	name, err := m.cfg.Requests.Ask(ctx, certapi.Request{
		Pod: pod, Source: source, Account: account, AccountUID: accountUID, Node: node, NodeUID: nodeUID, Key: key,
	})
	if err != nil {
		return nil, fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	return &asked{key: key, node: node, name: name}, nil
}

// checkRequest reads the state of the request.
func (m *Manager) checkRequest(ctx context.Context, s *slot, pod *corev1.Pod) error {
	name := s.asked.name
	answer, err := m.cfg.Requests.Answer(ctx, pod.Namespace, s.asked.node, name)
	switch {
	case err != nil:
		return fmt.Errorf("while getting PodCertificateRequest %q: %w", pod.Namespace+"/"+name, err)
	case !answer.Found:
		s.asked = nil
		return fmt.Errorf("PodCertificateRequest %q appears to have been deleted", pod.Namespace+"/"+name)
	case answer.Condition == "":
		return errNotIssued
	case answer.Condition == certapi.Issued:
		have, err := issuedCredential(answer, s.asked.key)
		if err == nil {
			m.cfg.Remember(pod.UID, s.purpose, name, have.key)
			s.have, s.asked = have, nil
			return nil
		}
		answer.Condition, answer.Reason, answer.Message = certapi.Failed, "Unusable", err.Error()
	}
	word := "failed"
	if answer.Condition == certapi.Denied {
		word = "denied"
	}
	s.asked, s.refused = nil, fmt.Errorf("PodCertificateRequest was permanently %s: reason=%q message=%q", word, answer.Reason, answer.Message)
	if s.have.isValid(time.Now()) { // otherwise, the mount fails with an event
		m.cfg.Recorder.Eventf(pod, corev1.EventTypeWarning, answer.Condition, "PodCertificateRequest %s/%s was %s, and the certificate of the pod ends at %s: reason=%q, message=%q",
			pod.Namespace, name, word, s.have.ends.UTC().Format(time.RFC3339), answer.Reason, answer.Message)
	}
	return s.refused
}

// issuedCredential returns the credential of an issued certificate and its key.
func issuedCredential(answer certapi.Answer, key crypto.Signer) (*credential, error) {
	chain, leaf, err := parseCertificates([]byte(answer.Chain), key)
	if err != nil {
		return nil, err
	}
	if !time.Now().Before(leaf.NotAfter) {
		return nil, fmt.Errorf("it ended at %s, which is over by the clock of this node", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	refresh := answer.BeginRefreshAt.Time
	if refresh.IsZero() {
		refresh = refreshOf(leaf)
	}
	if later := refresh.Add(rand.N(jitter)); later.Before(leaf.NotAfter) {
		refresh = later
	}
	return &credential{key: encoded, chain: chain, ends: leaf.NotAfter, refresh: refresh}, nil
}
