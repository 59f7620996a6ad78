// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// service is a metadata service of EC2 that requires tokens, like HttpTokens: required. Source of paths, headers and answers: "Use the Instance
// Metadata Service" and "Spot Instance interruption notices", Amazon EC2 User Guide, 2026-11-28.
type service struct {
	tokens  atomic.Int32 // number of issued tokens; only the last one is valid
	page    atomic.Value // the notice, a string; "": none
	looked  chan struct{}
	refused chan struct{}
	ended   chan struct{} // closed when the watch has ended
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := fmt.Sprint("token-", s.tokens.Load())
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		if r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "token-", s.tokens.Add(1))
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != token:
		w.WriteHeader(http.StatusUnauthorized)
		notify(s.refused)
	case r.URL.Path == "/latest/meta-data/spot/instance-action":
		page, _ := s.page.Load().(string)
		if page == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(page))
		notify(s.looked)
	case r.URL.Path == "/latest/meta-data/events/recommendations/rebalance":
		_, _ = w.Write([]byte(`{"noticeTime": "2026-11-28T08:22:00Z"}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await waits for a request. The watch must continue until then.
func (s *service) await(t *testing.T, request <-chan struct{}) {
	t.Helper()
	select {
	case <-request:
	case <-s.ended:
		t.Fatal("the watch has ended")
	}
}

// watch watches a new service until the test ends. Notices arrive in the channel, which closes when the watch ends.
func watch(t *testing.T) (s *service, told <-chan string, end func()) {
	t.Helper()
	s = &service{looked: make(chan struct{}), refused: make(chan struct{}), ended: make(chan struct{})}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	m := newMetadata(server.URL)
	m.http.Transport = nil // a mark needs rights
	ctx, cancel := context.WithCancel(t.Context())
	notices := make(chan string, 10)
	go func() {
		defer close(s.ended)
		defer close(notices)
		m.watchSpot(ctx, time.Millisecond, func(why string) { notices <- why })
	}()
	return s, notices, cancel
}

// TestSpotNoticeIsReadOnce: the agent reports the notice of EC2 once, and renews its token.
func TestSpotNoticeIsReadOnce(t *testing.T) {
	s, told, _ := watch(t)
	s.await(t, s.looked)
	s.tokens.Add(1) // the token expires
	s.await(t, s.refused)
	s.await(t, s.looked)
	s.page.Store(`{"action": "terminate", "time": "2026-11-28T08:22:00Z"}`)
	if got, want := <-told, "EC2 will terminate it at 2026-11-28T08:22:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if again, more := <-told; more {
		t.Errorf("told again: %q", again)
	}
	if n := s.tokens.Load(); n != 3 {
		t.Errorf("the agent took %d tokens, want one, and one after its end", n-1)
	}
}

// TestSpotRebalanceIsNoEnd: neither a rebalance recommendation nor a page without an action is a notice.
func TestSpotRebalanceIsNoEnd(t *testing.T) {
	s, told, end := watch(t)
	for _, page := range []string{"", "<html>proxy</html>", `{"noticeTime": "2026-11-28T08:22:00Z"}`} {
		s.page.Store(page)
		for range 3 {
			s.await(t, s.looked)
		}
	}
	end()
	for why := range told {
		t.Errorf("the agent says that it ends: %q", why)
	}
	if n := s.tokens.Load(); n != 1 {
		t.Errorf("the agent took %d tokens, want one", n)
	}
}
