// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// tokenTimeout bounds a token request to the API server.
const tokenTimeout = 30 * time.Second

// tokenSource is the prefix of the names of tokens in the secret values.
const tokenSource = "token/"

var errEmptyToken = errors.New("the API server's answer has no token")

// Token is a token of a pod's service account.
type Token struct {
	Value     string
	ExpiresAt time.Time
	RefreshAt time.Time
}

// tokenSlot is the state of one token. The goroutine that holds busy may request a new token, and owns the other fields.
type tokenSlot struct {
	busy   chan struct{} // holds one element during a request
	token  Token
	issued time.Time
	life   time.Duration // by the API server
	use    time.Duration // from issued
	failed time.Time     // the time of the last failed renewal
}

func (s *tokenSlot) isValid(now time.Time) bool {
	return s.token.Value != "" && timePassed(s.issued, now) < s.life
}

func (s *tokenSlot) isFresh(now time.Time) bool {
	switch {
	case !s.isValid(now):
		return false
	case timePassed(s.issued, now) < s.use:
		return true
	default:
		return !s.failed.IsZero() && timePassed(s.failed, now) < refreshPause
	}
}

// Token returns the token of source. The source must be in a projected volume of the pod, or the lifecycle.LastingToken of such a source. Only
// namespace, name and UID of the pod are used.
func (m *Manager) Token(ctx context.Context, pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (Token, error) {
	if m.cfg.Accounts == nil {
		return Token{}, errors.New("this node has no client that asks for tokens")
	}
	key := keyFor(source)
	p, api, err := m.findPod(pod)
	if err != nil {
		return Token{}, err
	}
	if !projectsToken(api, key) {
		return Token{}, errdefs.InvalidInputf("pod %s/%s has no projected volume with a token for audience %q that lives %d s",
			api.Namespace, api.Name, key.audience, key.life)
	}
	slot := m.slotOf(p, key)
	if slot == nil {
		return Token{}, goneError(api)
	}
	select {
	case slot.busy <- struct{}{}:
		defer func() { <-slot.busy }()
	case <-ctx.Done():
		return Token{}, fmt.Errorf("wait for the token of pod %s/%s: %w", api.Namespace, api.Name, context.Cause(ctx))
	}
	if !slot.isFresh(time.Now()) {
		if err := m.renewToken(ctx, slot, api, key); err != nil {
			if !slot.isValid(time.Now()) {
				return Token{}, err
			}
			slot.failed = time.Now()
			slot.token.RefreshAt = slot.failed.Add(refreshPause)
			log.G(ctx).WithError(err).WithField("pod", api.Namespace+"/"+api.Name).Warn("the token is not renewed; the present token is still valid and stays in use")
		}
	}
	return m.handToken(p, api, key, slot.token)
}

// slotOf returns the slot of a token, or nil for an ended pod.
func (m *Manager) slotOf(p *entry, key tokenKey) *tokenSlot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.over {
		return nil
	}
	slot := p.tokens[key]
	if slot == nil {
		slot = &tokenSlot{busy: make(chan struct{}, 1)}
		p.tokens[key] = slot
	}
	return slot
}

// renewToken requests a new token.
func (m *Manager) renewToken(ctx context.Context, slot *tokenSlot, pod *corev1.Pod, key tokenKey) error {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	name := accountName(pod)
	if m.cfg.Before != nil {
		m.cfg.Before(ctx, pod.Namespace, name)
	}
	asked := time.Now() // the token is no older
	got, err := m.cfg.Accounts.ServiceAccounts(pod.Namespace).CreateToken(ctx, name, tokenRequest(pod, key), metav1.CreateOptions{})
	if err == nil && got.Status.Token == "" {
		err = errEmptyToken
	}
	if err != nil {
		return fmt.Errorf("ask for a token of service account %s/%s for pod %s: %w", pod.Namespace, name, pod.Name, err)
	}
	slot.life = grantedLife(got, key)
	slot.use = useFor(slot.life, rand.Float64())
	slot.issued, slot.failed = asked, time.Time{}
	slot.token = Token{Value: got.Status.Token, ExpiresAt: got.Status.ExpirationTimestamp.Time, RefreshAt: asked.Add(slot.use)}
	return nil
}

// grantedLife returns the lifetime that the API server granted, which may differ from the requested lifetime.
func grantedLife(got *authenticationv1.TokenRequest, key tokenKey) time.Duration {
	seconds := key.life
	if got.Spec.ExpirationSeconds != nil {
		seconds = *got.Spec.ExpirationSeconds
	}
	return time.Duration(seconds) * time.Second
}

// handToken returns a token to the caller, unless the pod has ended in the meantime.
func (m *Manager) handToken(p *entry, pod *corev1.Pod, key tokenKey, token Token) (Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.over {
		return Token{}, goneError(pod)
	}
	p.values.Remember(fmt.Sprintf(tokenSource+"%s/%d", key.audience, key.life), token.ExpiresAt.String(), []byte(token.Value))
	return token, nil
}

func goneError(pod *corev1.Pod) error {
	return errdefs.NotFoundf("pod %s/%s (UID %s) has ended", pod.Namespace, pod.Name, pod.UID)
}
