// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// blobs is a container with only the requests that Sweep and Write need.
type blobs struct {
	mu     sync.Mutex
	names  map[string]bool // guarded by mu
	listed func()          // called after the names of a list are determined
	delete func()          // called before a delete
}

func (b *blobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut:
		b.mu.Lock()
		b.names[strings.TrimPrefix(r.URL.Path, "/")] = true
		b.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodGet:
		b.mu.Lock()
		list := b.left()
		b.mu.Unlock()
		b.listed()
		fmt.Fprint(w, "<EnumerationResults><Blobs>")
		for _, name := range list {
			if strings.HasPrefix(name, r.URL.Query().Get("prefix")) {
				fmt.Fprintf(w, "<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified></Properties></Blob>", name, time.Now().UTC().Format(http.TimeFormat))
			}
		}
		fmt.Fprint(w, "</Blobs></EnumerationResults>")
	default:
		b.delete()
		body := make([]byte, r.ContentLength)
		for n := 0; n < len(body); {
			m, err := r.Body.Read(body[n:])
			if n += m; err != nil {
				break
			}
		}
		b.mu.Lock()
		for name := range b.names {
			if strings.Contains(string(body), "/"+name+" HTTP") {
				delete(b.names, name)
			}
		}
		b.mu.Unlock()
		w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
		fmt.Fprint(w, "--b--\r\n")
	}
}

// left returns the sorted names. The caller holds b.mu.
func (b *blobs) left() (names []string) {
	for name := range b.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestSweepHeedsWritesAndLeavesDuringItsRequests: a pod that is written again keeps its blobs, and a pod that leaves again loses them with the next sweep.
func TestSweepHeedsWritesAndLeavesDuringItsRequests(t *testing.T) {
	for name, c := range map[string]struct {
		listed        func(p *Pods, write func())
		first, second int // blobs after the first and the second sweep
	}{
		"nothing":                 {nil, 0, 0},
		"a write during the list": {func(_ *Pods, write func()) { write() }, 1, 1},
		"a write and a leave during the list": {func(p *Pods, write func()) {
			write()
			p.Leave("b")
		}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &blobs{names: map[string]bool{}, listed: func() {}, delete: func() {}}
			server := httptest.NewServer(b)
			defer server.Close()
			p := New(&azblobs.Container{URL: server.URL, HTTP: server.Client(), Token: func(context.Context) (string, error) { return "t", nil }}, "n", "", time.Second)
			put := func(uid types.UID) {
				if err := p.Write(t.Context(), uid, podjob.Bundle{}); err != nil {
					t.Error(err)
				}
			}
			// The pod b has blobs only after the list, if it is written then.
			uid := types.UID("a")
			if name == "a write and a leave during the list" {
				uid = "b"
			} else {
				put("a")
			}
			p.Leave(uid)
			var once sync.Once
			if c.listed != nil {
				b.listed = func() { once.Do(func() { c.listed(p, func() { put(uid) }) }) }
			}
			b.delete = func() {
				if c.listed != nil {
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if err := p.Write(ctx, uid, podjob.Bundle{}); err == nil {
					t.Error("a write did not wait for the delete under way, which removes it")
				}
			}
			for i, want := range []int{c.first, c.second} {
				if err := p.Sweep(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				b.mu.Lock()
				if got := b.left(); len(got) != want {
					t.Errorf("after sweep %d: %q are left, want %d", i+1, got, want)
				}
				b.mu.Unlock()
			}
			if n := len(p.leaving); n > 0 {
				t.Errorf("%d pods still leave", n)
			}
		})
	}
}

// TestReleasedPodHasGracePeriod: a pod whose bundle is gone has its grace period while its claim exists, and none after all its blobs are gone.
func TestReleasedPodHasGracePeriod(t *testing.T) {
	for claim, want := range map[int]int64{http.StatusOK: 61, http.StatusNotFound: 0} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := http.StatusNotFound
			if r.URL.Path == "/"+claimName("n", "u") {
				status = claim
			}
			if status == http.StatusNotFound {
				w.Header().Set("x-ms-error-code", "BlobNotFound")
			}
			w.WriteHeader(status)
		}))
		blobs := &azblobs.Container{URL: server.URL, HTTP: server.Client(), Token: func(context.Context) (string, error) { return "t", nil }}
		pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(61))}}
		p := newPlace(Package{Prefix: "n", UID: "u", Bundle: podjob.Bundle{Pod: pod}}, blobs, t.TempDir(), "job", "machine")
		if stop, err := p.StopOrder(t.Context()); err != nil || stop == nil || stop.GraceSeconds != want {
			t.Errorf("with the answer %d for its claim, its order is %+v, %v; want a grace period of %d s", claim, stop, err, want)
		}
		server.Close()
	}
}
