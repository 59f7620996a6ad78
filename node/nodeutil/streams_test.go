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

func TestStreamLimitsOfNode(t *testing.T) {
	for _, tt := range []struct{ inAll, perUser, wantAll, wantPerUser int }{
		{0, 0, 2000, 1500},
		{1, 0, 1, 1},
		{100, 0, 100, 75},
		{100, 10, 100, 10},
		{100, -1, 100, -1},
		{-1, 0, -1, 0},
		{-1, 7, -1, 7},
	} {
		cfg := &NodeConfig{MaxStreams: tt.inAll, MaxStreamsPerUser: tt.perUser}
		if inAll, perUser := cfg.streamLimits(); inAll != tt.wantAll || perUser != tt.wantPerUser {
			t.Errorf("with %d and %d: got %d and %d, want %d and %d", tt.inAll, tt.perUser, inAll, perUser, tt.wantAll, tt.wantPerUser)
		}
	}
}

// The API server insists on an order. What a program declares stays.
func TestDeclareStreams(t *testing.T) {
	for _, tt := range []struct {
		mux        api.ServeMux
		have, want []string
	}{
		{http.NewServeMux(), nil, []string{webSocketFeature}},
		{http.NewServeMux(), []string{"A", "Z"}, []string{"A", webSocketFeature, "Z"}},
		{http.NewServeMux(), []string{webSocketFeature}, []string{webSocketFeature}},
		{nil, []string{"Z"}, []string{"Z"}}, // the routes are not ours
	} {
		cfg := &NodeConfig{mux: tt.mux, NodeSpec: corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: slices.Clone(tt.have)}}}
		declareStreams(cfg)
		if got := cfg.NodeSpec.Status.DeclaredFeatures; !slices.Equal(got, tt.want) {
			t.Errorf("with %q and routes %v: got %q, want %q", tt.have, tt.mux != nil, got, tt.want)
		}
	}
}

// A node that serves nothing declares nothing.
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

// What a request does in the name of a user can be told by package api, which keeps records of it.
func TestCallerReachesTheRoutes(t *testing.T) {
	var got api.Caller
	h := WithAuth(NoAuth(), http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { got, _ = api.CallerFrom(req.Context()) }))
	h.ServeHTTP(nil, must(http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)))
	if got.Name != "system:anonymous" || !slices.Equal(got.Groups, []string{"system:unauthenticated"}) {
		t.Errorf("got %+v, want nobody", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
