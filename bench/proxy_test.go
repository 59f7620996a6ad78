// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRequestsAreCountedByWhatTheyAre(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/jobs": "PUT /v1/jobs",
		"/v1/job/vk-bench-n-01234567-89ab-cdef-0123-456789abcdef": "PUT /v1/job/*",
		"/v1/allocation/01234567-89ab-cdef-0123-456789abcdef/run": "PUT /v1/allocation/*/run",
		"/status": "PUT /status",
	} {
		if got := requestKey(http.MethodPut, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// TestProxy: bodies, refusals and streams pass through, and requests are counted. The first successful answer
// about a pod makes the pod known.
func TestProxy(t *testing.T) {
	go1 := make(chan struct{})
	refuse := true
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/stream":
			_, _ = io.WriteString(w, "one\n")
			_ = http.NewResponseController(w).Flush()
			<-go1
		case r.URL.Path == "/create" && refuse:
			refuse = false
			http.Error(w, "busy", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, r.Method+" "+string(body))
		}
	}))
	defer backend.Close()
	defer close(go1)
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(l, "tcp", backend.Listener.Addr().String())
	defer p.stop()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	ask := func(method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	begin := time.Now()
	const create, remove = `{"pod":{"metadata":{"namespace":"ns","name":"pod-0"}}}`, `{"metadata":{"namespace":"ns","name":"pod-0"}}`
	if answer := ask(http.MethodPost, "/create", create); answer.StatusCode != http.StatusInternalServerError {
		t.Errorf("a refusal is %s", answer.Status)
	}
	if got, _ := p.podLives(t.Context(), "ns"); len(got) != 0 {
		t.Errorf("a create that was refused makes %v", got)
	}
	ask(http.MethodPost, "/create", create)
	first, _ := p.podLives(t.Context(), "ns")
	ask(http.MethodPost, "/create", create)
	ask(http.MethodDelete, "/delete", remove)
	got, _ := p.podLives(t.Context(), "ns")
	k := got["pod-0"]
	if k.began.Before(begin) || k.ended.Before(k.began) || !k.began.Equal(first["pod-0"].began) {
		t.Errorf("the pod lived %+v, and began %v at first", k, first)
	}
	if other, _ := p.podLives(t.Context(), "other"); len(other) != 0 {
		t.Errorf("another namespace has %v", other)
	}
	if said, _ := io.ReadAll(ask(http.MethodGet, "/status", "[pods]").Body); string(said) != "GET [pods]" {
		t.Errorf("the backend has got %q", said)
	}
	if line, err := bufio.NewReader(ask(http.MethodGet, "/stream", "").Body).ReadString('\n'); err != nil || line != "one\n" {
		t.Errorf("the stream says %q, %v", line, err)
	}
	counted, err := p.countRequests(begin, time.Now())
	if err != nil || counted["POST /create"] != 3 || counted["DELETE /delete"] != 1 || counted["GET /status"] != 1 || counted.countAll() != 6 {
		t.Errorf("got %v, %v", counted, err)
	}
}
