// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// faulty returns a client of an agent that answers with the handler of the test.
func faulty(t *testing.T, answer http.HandlerFunc, change func(*Config)) *client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := newClient(testConfig(t, func(c *Config) {
		c.Address = server.URL
		if change != nil {
			change(c)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestErrorsAreNeverEmpty checks that every failure of a list is an error, and never a list without jobs.
func TestErrorsAreNeverEmpty(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		calls  int64
		want   string
	}{
		"throttled": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "slow down", http.StatusTooManyRequests) }, tries, "429: slow down"},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no leader", http.StatusInternalServerError)
		}, 1, "500: no leader"},
		"not allowed": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Permission denied", http.StatusForbidden) }, 1, "403: Permission denied"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`[{"ID":"x"},`))
		}, tries, "EOF"},
		"no JSON":      {func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusOK, "<html>") }, 1, "and is not Nomad"},
		"other answer": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }, tries, "invalid character"},
		"hung up":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, tries, "EOF"},
		"sent elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, 1, "302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			c := faulty(t, func(w http.ResponseWriter, r *http.Request) { calls.Add(1); tt.answer(w, r) }, nil)
			_, err := c.list(t.Context(), "vk-")
			if err == nil || !strings.Contains(err.Error(), tt.want) || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
				t.Errorf("got %v, want an error without a kind, with %q", err, tt.want)
			}
			if calls.Load() != tt.calls {
				t.Errorf("the agent was asked %d times, want %d", calls.Load(), tt.calls)
			}
		})
	}
}

func TestRetryAfterOfTheAgentIsSaid(t *testing.T) {
	var calls atomic.Int64
	c := faulty(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}, nil)
	_, err := c.list(t.Context(), "vk-")
	if after, _ := errdefs.RetryAfterOf(err); after.Seconds() != 60 || calls.Load() != 1 {
		t.Errorf("got %s after %d calls, want 60 s after one: a pod must not hang for that long", after, calls.Load())
	}
}

// TestJobThatIsRefused checks that a faulty job is not submitted again, and that a failure of the servers is
// retried.
func TestJobThatIsRefused(t *testing.T) {
	for text, invalid := range map[string]bool{"1 error occurred: * no such driver": true, "nonexistent namespace": true, "rpc error: No cluster leader": false} {
		c := faulty(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, http.StatusInternalServerError) }, nil)
		if _, err := c.register(t.Context(), nil); err == nil || errdefs.IsInvalidInput(err) != invalid {
			t.Errorf("%s: got %v, of the kind invalid-input %t, want %t", text, err, errdefs.IsInvalidInput(err), invalid)
		}
	}
}

// TestVariableThatIsRemoved checks that the removal of a Variable accepts an answer without content, and a
// Variable that is already gone.
func TestVariableThatIsRemoved(t *testing.T) {
	for code, text := range map[int]string{http.StatusNoContent: "", http.StatusNotFound: "variable not found"} {
		c := faulty(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, text) }, nil)
		if err := c.removeVariable(t.Context(), "x", 0); err != nil {
			t.Errorf("the agent answers %d: got %v, want no error", code, err)
		}
	}
}

// TestTokenIsReadAgain checks that the next request uses a renewed token.
func TestTokenIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	var got atomic.Value
	var used Config
	c := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Nomad-Token"))
		_, _ = w.Write([]byte("[]"))
	}, func(c *Config) {
		if err := c.Token.UnmarshalJSON([]byte(`{"file":"` + file + `"}`)); err != nil {
			t.Fatal(err)
		}
		used = *c
	})
	for _, token := range []string{"one", "twotwo"} {
		write(token)
		awaitToken(t, used, token)
		if _, err := c.variables(t.Context(), "x"); err != nil || got.Load() != token {
			t.Errorf("got the token %v, %v, want %s", got.Load(), err, token)
		}
	}
}

// TestStreamThatBreaks checks that a cut stream is an error, and that a stream that never began causes no list.
func TestStreamThatBreaks(t *testing.T) {
	begun := 0
	c := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Query()["topic"]) != 3 {
			t.Errorf("topics are %q", r.URL.Query()["topic"])
		}
		_, _ = w.Write([]byte("{}\n{\"Index\":5,\"Events\":[{\"Topic\":\"Job\",\"Key\":\"k\"}]}\n{\"Ind"))
	}, nil)
	var events []event
	err := c.events(t.Context(), func() error { begun++; return nil }, func(e event) { events = append(events, e) })
	if err == nil || begun != 1 || len(events) != 1 || events[0].Key != "k" {
		t.Errorf("got %v, begun %d times, events %v, want an error after one event", err, begun, events)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.events(ctx, func() error { begun++; return nil }, nil); !errors.Is(err, context.Canceled) || begun != 1 {
		t.Errorf("got %v, begun %d times, want the end of the context", err, begun)
	}
}
