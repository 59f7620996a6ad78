// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// TestDeclareStreams: the declared features are sorted, as the API server requires, and the program's own
// features stay.
func TestDeclareStreams(t *testing.T) {
	for _, tt := range []struct {
		mux        api.ServeMux
		have, want []string
	}{
		{http.NewServeMux(), nil, []string{webSocketFeature}},
		{http.NewServeMux(), []string{"A", "Z"}, []string{"A", webSocketFeature, "Z"}},
		{http.NewServeMux(), []string{webSocketFeature}, []string{webSocketFeature}},
		{nil, []string{"Z"}, []string{"Z"}}, // the program serves its own routes
	} {
		cfg := &NodeConfig{mux: tt.mux, NodeSpec: corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: slices.Clone(tt.have)}}}
		declareStreams(cfg)
		if got := cfg.NodeSpec.Status.DeclaredFeatures; !slices.Equal(got, tt.want) {
			t.Errorf("with %q and routes %v: got %q, want %q", tt.have, tt.mux != nil, got, tt.want)
		}
	}
}

// TestStreamsAreDeclaredWhenServed: a node without a server does not declare its streams.
func TestStreamsAreDeclaredWhenServed(t *testing.T) {
	ca := testpki.New(t)
	mux, other := http.NewServeMux(), http.NewServeMux()
	for served, opts := range map[bool][]NodeOpt{
		false: {AttachProviderRoutes(other)},
		true: {AttachProviderRoutes(mux), WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))), func(cfg *NodeConfig) error {
			cfg.Handler = WithAuth(NoAuth(), mux)
			return nil
		}},
	} {
		n, err := NewNode("n1", newMemory().asProvider, append(opts, WithClient(fake.NewClientset()))...)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(n.cfg.NodeSpec.Status.DeclaredFeatures, webSocketFeature); got != served {
			t.Errorf("with a server %t: the feature is declared: %t", served, got)
		}
	}
}
