// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestAgentThatCannotBindHasNoLease has an agent with an unusable access to a target. The agent reports the
// problem and ends, so that other agents go on.
func TestAgentThatCannotBindHasNoLease(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it asked %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	broken := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no certificate")}}
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	err := Run(ctx, Options{Config: Config{Targets: []Target{{Node: "a", access: broken}}}, Access: &rest.Config{Host: server.URL}, Namespace: "kube-system"})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v (%v), want what is wrong with the target", err, ctx.Err())
	}
}
