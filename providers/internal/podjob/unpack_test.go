// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// reached is a transport that counts requests and sends none.
type reached []string

func (a *reached) RoundTrip(r *http.Request) (*http.Response, error) {
	*a = append(*a, r.URL.String())
	w := httptest.NewRecorder()
	return w.Result(), nil
}

// TestPullsAreEncrypted: plain HTTP is only used for a registry on this machine.
func TestPullsAreEncrypted(t *testing.T) {
	for url, want := range map[string]bool{
		"https://10.0.0.1/v2/": true, "https://registry.example/v2/": true, "http://127.0.0.1:5000/v2/": true, "http://localhost:5000/v2/": true, "http://[::1]:5000/v2/": true,
		"http://10.0.0.1/v2/": false, "http://172.16.0.1:5000/v2/": false, "http://192.168.1.1/v2/": false, "http://registry.local/v2/": false,
		"http://127.0.0.1.example.org/v2/": false, "http://localhost.example.org/v2/": false, "http://registry.example/token": false,
	} {
		var got reached
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		answer, err := encrypted{&got}.RoundTrip(r)
		if answer != nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != want || (len(got) == 1) != want {
			t.Errorf("%s: sent %v, %v, want it sent: %v", url, got, err, want)
		}
	}
}

// TestPrivateRegistryNeedsHTTPS: a registry for which the library tries HTTP gets no HTTP request, with or without a login.
func TestPrivateRegistryNeedsHTTPS(t *testing.T) {
	asked := make(chan string, 16)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			asked <- r.URL.String()
		}
		panic(http.ErrAbortHandler)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL) // receives HTTP requests to other machines
	t.Setenv("HTTPS_PROXY", proxy.URL)
	_, err := newUnpacker(t.TempDir(), nil).PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "registry.local/app:1"}, &runtimeapi.AuthConfig{Username: "u", Password: "p"}, nil)
	if err == nil || !strings.Contains(err.Error(), "want https") {
		t.Errorf("got %v, want that it asks for https", err)
	}
	select {
	case url := <-asked:
		t.Errorf("it was asked by http: %s", url)
	default:
	}
}

// TestPullHasTheUsualHeap: a pull runs with the default garbage collection, also after a host started with a larger heap.
func TestPullHasTheUsualHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := newUnpacker(t.TempDir(), nil).PullImage(t.Context(), &runtimeapi.ImageSpec{Image: strings.TrimPrefix(server.URL, "http://") + "/app:1"}, nil, nil); err == nil {
		t.Fatal("there is an image")
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("the heap may grow by %d %%, want 100", got)
	}
}

// TestPullThatWaitsEnds: a pull that waits for another pull ends with its context.
func TestPullThatWaitsEnds(t *testing.T) {
	begun, end := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	u, image := newUnpacker(t.TempDir(), nil), &runtimeapi.ImageSpec{Image: strings.TrimPrefix(server.URL, "http://") + "/app:1"}
	first := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(first); _, _ = u.PullImage(ctx, image, nil, nil) }()
	<-begun
	brief, stop := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { _, err := u.PullImage(brief, image, nil, nil); second <- err }()
	stop()
	select {
	case err := <-second:
		if err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("got %v, want that it was cancelled", err)
		}
	case <-first:
		t.Error("the first pull ended before")
	case <-time.After(10 * time.Second):
		t.Error("it waits for the other one")
	}
	cancel()
	close(end)
	<-first
}
