// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneLateRequestClosesNothing: many nodes share the connection of the heartbeats. It is closed when no
// request gets an answer, not when one request is late.
func TestOneLateRequestClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		var dead atomic.Bool
		transport := &withTimeout{timeout: 10 * time.Second, onTimeout: func() { closed.Add(1) },
			next: roundTripFunc(func(req *http.Request) (*http.Response, error) {
				if dead.Load() || req.URL.Path == "/late" {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			})}
		ask := func(path string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://test"+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		go ask("/late")
		for range 12 {
			ask("/lease")
			time.Sleep(time.Second)
		}
		if n := closed.Load(); n != 0 {
			t.Errorf("the connection was closed %d times although others had answers", n)
		}
		dead.Store(true)
		ask("/lease")
		if closed.Load() == 0 {
			t.Error("the connection was not closed although nobody had an answer for 10 s")
		}
	})
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
