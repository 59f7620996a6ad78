// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// HeaderToken is the header of a token.
const HeaderToken = "X-Auth-Token"

// Login has the user and the project for a token of an IAM service.
type Login struct {
	// User belongs to the account Domain. Each login calls Password.
	User, Domain string
	Password     func(context.Context) string
	// ProjectName or ProjectID is the project of the token; the ID takes precedence.
	ProjectName, ProjectID string
}

// Tokens has a token of an IAM service (v3), and requests the next one before the token expires.
type Tokens struct {
	url   string
	login Login
	next  http.RoundTripper
	now   func() time.Time

	asking chan struct{} // has room for a single request for a token

	mu      sync.Mutex
	token   string    // guarded by mu; "" for none
	renewAt time.Time // guarded by mu
	endsAt  time.Time // guarded by mu
	asked   time.Time // guarded by mu; the time of the last token request
	err     error     // guarded by mu; the error of the last token request
	refused time.Time // guarded by mu; the last request after a refused token
}

// NewTokens returns the tokens of the IAM service at endpoint, such as https://iam.example.com. now is the
// clock; nil means the clock of the machine.
func NewTokens(endpoint string, login Login, next http.RoundTripper, now func() time.Time) *Tokens {
	if now == nil {
		now = time.Now
	}
	return &Tokens{url: strings.TrimSuffix(endpoint, "/") + "/v3/auth/tokens", login: login, next: next, now: now, asking: make(chan struct{}, 1)}
}

// retryRenewal is the pause after a failed renewal while the token is still valid.
const retryRenewal = time.Minute

// loginTimeout is the timeout of a login that a request waits for.
const loginTimeout = 30 * time.Second

// renewTimeout is the timeout of a login while the token is still valid. The request waits for this login, but does not fail if it fails.
const renewTimeout = 3 * time.Second

// Token returns a valid token other than the refused one. While the token is valid, one caller requests the next token, and the others do not wait.
// Token repeats a failed login, or a login after a refused token, at most once a minute, because wrong logins lock a user.
func (t *Tokens) Token(ctx context.Context, refused string) (string, error) {
	good, due, err := t.knownToken(refused)
	if !due {
		return good, err
	}
	if good != "" {
		select {
		case t.asking <- struct{}{}:
		default:
			return good, nil
		}
	} else {
		select {
		case t.asking <- struct{}{}:
		case <-ctx.Done():
			return "", fmt.Errorf("wait for a token of user %s from %s: %w", t.login.User, t.url, ctx.Err())
		}
	}
	defer func() { <-t.asking }()
	good, due, err = t.knownToken(refused) // another caller may have received a token meanwhile
	if !due {
		return good, err
	}
	timeout := loginTimeout
	if good != "" {
		timeout = renewTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	asked := t.now()
	token, ends, err := t.askKeystone(bounded)
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() == nil { // otherwise the caller has gone, and the error is not about the service
		t.asked, t.err = asked, err
		if t.isRefused(refused) {
			t.refused = asked
		}
	}
	switch {
	case err == nil:
		t.token, t.endsAt = token, ends
		t.renewAt = asked.Add(ends.Sub(asked) * 9 / 10)
	case good != "":
		t.renewAt = t.now().Add(retryRenewal)
		return good, nil
	}
	return token, err
}

// knownToken returns the token if it is valid, and whether a new token is due. If there is neither, the error has the reason.
func (t *Tokens) knownToken(refused string) (good string, due bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	recently := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < retryRenewal }
	isRefused := t.isRefused(refused)
	switch {
	case isRefused && recently(t.refused) && t.err == nil:
		return t.token, false, nil // the service refuses the new token too, so the token is not the cause
	case t.token != "" && !isRefused && now.Before(t.endsAt):
		return t.token, !now.Before(t.renewAt), nil
	case t.err != nil && recently(t.asked):
		return "", false, t.err
	}
	return "", true, nil
}

// isRefused reports whether the stored token is the refused one. The caller holds mu.
func (t *Tokens) isRefused(refused string) bool { return refused != "" && t.token == refused }

// askKeystone requests a token. The error does not contain the response, because the response may quote the request.
func (t *Tokens) askKeystone(ctx context.Context) (token string, ends time.Time, err error) {
	fail := func(err error) (string, time.Time, error) {
		return "", time.Time{}, fmt.Errorf("ask %s for a token of user %s: %w", t.url, t.login.User, err)
	}
	body, err := json.Marshal(t.loginRequest(ctx))
	if err != nil {
		return fail(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fail(err)
	}
	if answer.StatusCode != http.StatusCreated {
		return fail(fmt.Errorf("got %s: look at user, domain, password and project", answer.Status))
	}
	var says struct {
		Token struct {
			ExpiresAt time.Time `json:"expires_at"`
		} `json:"token"`
	}
	if err := json.Unmarshal(data, &says); err != nil {
		return fail(fmt.Errorf("the answer is not understood: %T", err))
	}
	token = answer.Header.Get("X-Subject-Token")
	if token == "" || says.Token.ExpiresAt.IsZero() {
		return fail(errors.New("the answer has no token, or no end of it"))
	}
	return token, says.Token.ExpiresAt, nil
}

type object = map[string]any

func (t *Tokens) loginRequest(ctx context.Context) object {
	project := object{"name": t.login.ProjectName}
	if t.login.ProjectID != "" {
		project = object{"id": t.login.ProjectID}
	}
	return object{"auth": object{
		"identity": object{"methods": []string{"password"}, "password": object{"user": object{
			"name": t.login.User, "password": t.login.Password(ctx), "domain": object{"name": t.login.Domain},
		}}},
		"scope": object{"project": project},
	}}
}
