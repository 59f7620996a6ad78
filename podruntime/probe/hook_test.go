// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestHookErrors(t *testing.T) {
	p := New(Config{Exec: func(context.Context, string, []string, time.Duration) ([]byte, []byte, error) {
		return []byte("said"), nil, errExit
	}})
	for want, hook := range map[string]*corev1.LifecycleHandler{
		`Exec lifecycle hook ([a b]) for Container "app" in Pod "web_ns(uid)" failed - error: exit 1, message: "said"`: {Exec: &corev1.ExecAction{Command: []string{"a", "b"}}},
		`HTTP lifecycle hook (/x) for Container "app" in Pod "web_ns(uid)" failed - error: invalid port number: 0`:     {HTTPGet: get(0, "/x").HTTPGet},
		`Cannot run handler: invalid handler: it has no action`:                                                        {},
	} {
		if err := p.Hook(t.Context(), running("a"), hook); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestHookHTTP: an HTTP hook fails only if there is no answer at all.
func TestHookHTTP(t *testing.T) {
	var seen *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = req
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	var events []string
	p := New(Config{Event: func(_ *corev1.Pod, _, _, reason, message string) { events = append(events, reason+": "+message) }})
	port := portIn(t, s.URL)
	if err := p.Hook(t.Context(), running("a"), &corev1.LifecycleHandler{HTTPGet: get(port, "/x").HTTPGet}); err != nil {
		t.Error(err)
	}
	if got := seen.Header.Get("User-Agent"); got != "kube-lifecycle/1.37" || len(events) != 0 {
		t.Errorf("user agent %q, events %q", got, events)
	}
	secure := get(port, "/x", func(a *corev1.HTTPGetAction) {
		a.Scheme = corev1.URISchemeHTTPS
		a.HTTPHeaders = []corev1.HTTPHeader{{Name: "Authorization", Value: "secret"}, {Name: "X", Value: "1"}}
	})
	if err := p.Hook(t.Context(), running("a"), &corev1.LifecycleHandler{HTTPGet: secure.HTTPGet}); err != nil {
		t.Error(err)
	}
	if seen.Header.Get("Authorization") != "" || seen.Header.Get("X") != "1" {
		t.Errorf("sent without TLS: %v", seen.Header)
	}
	if len(events) != 1 || !strings.HasPrefix(events[0], "LifecycleHTTPFallback: request to HTTPS lifecycle hook 127.0.0.1:") ||
		!strings.HasSuffix(events[0], " got HTTP response, retry with HTTP succeeded") {
		t.Errorf("events %q", events)
	}
}

func TestPreStopStaysInGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Exec: func(ctx context.Context, _ string, _ []string, timeout time.Duration) ([]byte, []byte, error) {
			if timeout != 0 {
				t.Errorf("timeout %s", timeout)
			}
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}})
		pre := func(h *corev1.LifecycleHandler) Target {
			return running("a", func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PreStop: h} })
		}
		sleeping := func(s int64) *corev1.LifecycleHandler {
			return &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: s}}
		}
		for name, tc := range map[string]struct {
			target Target
			grace  time.Duration
			took   time.Duration
			err    string
		}{
			"none":        {running("a"), time.Minute, 0, ""},
			"no grace":    {pre(sleeping(5)), 0, 0, ""},
			"sleeps":      {pre(sleeping(5)), time.Minute, 5 * time.Second, ""},
			"sleeps long": {pre(sleeping(60)), 5 * time.Second, 5 * time.Second, "container terminated before sleep hook finished"},
			"runs long":   {pre(&corev1.LifecycleHandler{Exec: &corev1.ExecAction{}}), 5 * time.Second, 5 * time.Second, "context deadline exceeded"},
		} {
			took, err := p.PreStop(t.Context(), tc.target, tc.grace)
			if took != tc.took || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: took %s, %v", name, took, err)
			}
		}
	})
}
