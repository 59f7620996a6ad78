// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// silence is an API server that accepts requests and never answers.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// refusal is an API server that cannot be reached.
type refusal struct{}

func (refusal) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

func TestRunEndsWhileTheAPIServerIsSilent(t *testing.T) {
	for name, transport := range map[string]http.RoundTripper{"silent": silence{}, "unreachable": refusal{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://localhost", Transport: transport})
				if err != nil {
					t.Fatal(err)
				}
				s := NewStore(client)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				s.Track(podUsing("a", "mine"))
				s.Secrets().Informer()
				for _, object := range []string{"mine", "other"} {
					asking, stop := context.WithTimeout(ctx, 5*time.Second)
					_, err := s.ConfigMap(asking, "ns", object)
					stop()
					if err == nil || name == "silent" && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: error %v", object, err)
					}
				}
				time.Sleep(10 * time.Minute) // deep in the backoff
				cancel()
				before := time.Now()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(before); took > time.Second {
					t.Errorf("Run ended %s after its context", took)
				}
			})
		})
	}
}
