// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// iam is an IAM service whose tokens are valid for an hour, and a service that accepts these tokens.
type iam struct {
	mu     sync.Mutex
	now    time.Time
	logins int
	down   bool
	good   map[string]bool
	asked  string // the last login
	sent   []string
}

func (i *iam) RoundTrip(r *http.Request) (*http.Response, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if r.URL.Host == "iam.example.com" {
		i.logins, i.asked = i.logins+1, string(body)
		if i.down {
			return answer(http.StatusForbidden), nil
		}
		token := fmt.Sprintf("token-%d", i.logins)
		i.good[token] = true
		a := answer(http.StatusCreated)
		a.Header.Set("X-Subject-Token", token)
		a.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"token":{"expires_at":%q}}`, i.now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z"))))
		return a, nil
	}
	token := r.Header.Get(HeaderToken)
	i.sent = append(i.sent, token+" "+string(body))
	if !i.good[token] {
		return answer(http.StatusUnauthorized), nil
	}
	return answer(http.StatusOK), nil
}

func newIAM(t *testing.T) (*iam, *Tokens, func() (int, error)) {
	i := &iam{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), good: map[string]bool{}}
	tokens := NewTokens("https://iam.example.com/", Login{
		User: "node", Domain: "account", ProjectID: "p", Password: func(context.Context) string { return "hunter2" },
	}, i, func() time.Time { i.mu.Lock(); defer i.mu.Unlock(); return i.now })
	transport := WithToken(i, tokens)
	return i, tokens, func() (int, error) {
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/a", strings.NewReader("text")))
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		return answer.StatusCode, nil
	}
}

func (i *iam) pass(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = i.now.Add(d)
}

func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	i, _, send := newIAM(t)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {53 * time.Minute, 1}, {2 * time.Minute, 2}, {time.Minute, 2}} {
		i.pass(step.after)
		if code, err := send(); code != 200 || err != nil {
			t.Fatalf("got %d, %v", code, err)
		}
		if i.logins != step.want {
			t.Errorf("after %s more: %d logins, want %d", step.after, i.logins, step.want)
		}
	}
	var login map[string]map[string]map[string]any
	if err := json.Unmarshal([]byte(i.asked), &login); err != nil || login["auth"]["scope"]["project"].(map[string]any)["id"] != "p" {
		t.Errorf("the login is %s (%v)", i.asked, err)
	}
}

func TestTokenOutlivesAnIAMThatIsDown(t *testing.T) {
	i, _, send := newIAM(t)
	if _, err := send(); err != nil {
		t.Fatal(err)
	}
	i.down = true
	i.pass(56 * time.Minute)
	for range 3 {
		if code, err := send(); code != 200 || err != nil {
			t.Errorf("while the token is good: got %d, %v", code, err)
		}
	}
	if i.logins != 2 {
		t.Errorf("%d logins, want one more that failed", i.logins-1)
	}
	i.pass(5 * time.Minute)
	_, err := send()
	if err == nil || !strings.Contains(err.Error(), "user node") {
		t.Errorf("when the token has ended: got %v", err)
	}
	for _, secret := range []string{"hunter2", "token-1"} {
		if strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	i, _, send := newIAM(t)
	if _, err := send(); err != nil {
		t.Fatal(err)
	}
	i.good = map[string]bool{} // the token was revoked
	if code, err := send(); code != 200 || err != nil || i.logins != 2 {
		t.Errorf("got %d, %v and %d logins", code, err, i.logins)
	}
	if last := i.sent[len(i.sent)-1]; last != "token-2 text" {
		t.Errorf("sent again: %q", last)
	}
	refusing := WithToken(fn(func(*http.Request) (*http.Response, error) { return answer(http.StatusUnauthorized), nil }), NewTokens(
		"https://iam.example.com", Login{Password: func(context.Context) string { return "" }}, i, func() time.Time { return i.now }))
	before := i.logins
	answer, err := refusing.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/a", nil))
	if err != nil || answer.StatusCode != http.StatusUnauthorized || i.logins != before+2 {
		t.Errorf("a service that takes no token: got %v, %v after %d logins", answer, err, i.logins-before)
	}
}

func TestOneLoginForManyRequests(t *testing.T) {
	i, tokens, _ := newIAM(t)
	if _, err := tokens.Token(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if token, err := tokens.Token(t.Context(), "token-1"); err != nil || token != "token-2" {
				t.Errorf("got %q, %v", token, err)
			}
		})
	}
	wg.Wait()
	if i.logins != 2 {
		t.Errorf("%d logins, want 2", i.logins)
	}
}

// TestLoginsAreBounded has a wrong password, or a service that accepts no token. Neither causes many logins,
// which would lock the user.
func TestLoginsAreBounded(t *testing.T) {
	i, _, send := newIAM(t)
	i.down = true
	for range 10 {
		if _, err := send(); err == nil {
			t.Error("there is a token without a login")
		}
	}
	if i.logins != 1 {
		t.Errorf("%d logins in no time, want 1", i.logins)
	}
	i.down = false
	i.pass(retryRenewal)
	if code, err := send(); code != 200 || err != nil {
		t.Errorf("a minute later: got %d, %v", code, err)
	}

	tokens := NewTokens("https://iam.example.com", Login{Password: func(context.Context) string { return "" }}, i, func() time.Time { return i.now })
	before, refused := i.logins, ""
	for range 10 {
		token, err := tokens.Token(t.Context(), refused)
		if err != nil {
			t.Fatal(err)
		}
		refused = token
	}
	if got := i.logins - before; got != 2 {
		t.Errorf("%d logins for a service that takes no token, want 2", got)
	}
}
