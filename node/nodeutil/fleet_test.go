// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// named is a provider whose container logs contain the name of its node.
type named struct {
	*memory
	node string
}

func (p named) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("node " + p.node)), nil
}

func makeNamed(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
	if cfg.Node.Name == "c" {
		cfg.Node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.3"}}
	}
	return named{newMemory(), cfg.Node.Name}, nil, nil
}

// onlyFor is an Auth that allows everything on the listed nodes; "" stands for all nodes.
type onlyFor struct {
	NodeRequestAttr
	nodes []string
	asked *[]string
}

func (a onlyFor) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{Name: "somebody"}}, true, nil
}

func (a onlyFor) Authorize(_ context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	*a.asked = append(*a.asked, attrs.GetName())
	for _, n := range a.nodes {
		if n == attrs.GetName() || n == "" {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionDeny, "", nil
}

// startFleet runs the nodes a, b and c. Each node has a pod that is named after the node.
func startFleet(t *testing.T, opts ...NodeOpt) (*Fleet, *http.ServeMux) {
	t.Helper()
	outsideCluster(t)
	client := fake.NewClientset()
	for _, name := range []string{"a", "b", "c", "foreign"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "main"}}},
		}
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	cert, key := testpki.New(t).Issue(t, "a")
	f, err := NewFleet([]string{"a", "b", "c"}, makeNamed, append([]NodeOpt{
		WithClient(client), WithTLSConfig(WithKeyPairFromPath(cert, key)), AttachProviderRoutes(mux),
		func(cfg *NodeConfig) error {
			cfg.HTTPListenAddr, cfg.Handler = "127.0.0.1:0", mux
			return nil
		}}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { _ = f.Run(ctx) }() // f.Err returns the error
	t.Cleanup(func() {
		stop()
		<-f.Done()
		if err := f.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want that the context was cancelled", err)
		}
	})
	if err := f.WaitReady(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	return f, mux
}

// TestFleetAnswersForTheNodeThatIsAsked: a request is authorized for one node, and the same node answers it.
func TestFleetAnswersForTheNodeThatIsAsked(t *testing.T) {
	var asked []string
	auth := &onlyFor{NodeRequestAttr: NodeRequestAttr{NodeName: "a"}, asked: &asked}
	var routes http.Handler
	f, mux := startFleet(t, func(cfg *NodeConfig) error {
		routes = cfg.Handler
		cfg.Handler = WithAuth(auth, routes)
		return nil
	})
	const logs = "/containerLogs/ns/"
	for _, tc := range []struct {
		name       string
		may        []string
		host, path string
		at         string // the address to connect to
		asked      string
		status     int
		body       string
	}{
		{"pod of a", []string{"a"}, "port", logs + "pod-a/main", "", "a", 200, "node a"},
		{"pod of b", []string{"b"}, "port", logs + "pod-b/main", "", "b", 200, "node b"},
		{"pod of b without permission for it", []string{"a"}, "port", logs + "pod-b/main", "", "b", 403, ""},
		{"pod of b at a", []string{"a"}, "a:10250", logs + "pod-b/main", "", "a", 404, "not on this node"},
		{"foreign pod", []string{""}, "port", logs + "pod-foreign/main", "", "", 404, "none of the nodes"},
		{"foreign pod with permission for one node", []string{"a"}, "port", logs + "pod-foreign/main", "", "", 403, ""},
		{"pods by host name", []string{"b"}, "b:10250", "/pods", "", "b", 200, "pod-b"},
		{"pods by address", []string{"c"}, "port", "/pods", "192.0.2.3", "c", 200, "pod-c"},
		{"pods by the address as the host", []string{"c"}, "192.0.2.3:10250", "/pods", "", "c", 200, "pod-c"},
		{"pods of nobody knows whom", []string{""}, "port", "/pods", "127.0.0.1", "", 421, "several nodes"},
		{"the same with permission for one node", []string{"a"}, "port", "/pods", "", "", 403, ""},
		{"stats of nobody knows whom", []string{""}, "port", "/stats/summary", "", "", 421, "several nodes"},
		{"health of all", []string{""}, "port", "/healthz", "", "", 200, "ok"},
		{"metrics of all", []string{""}, "port", "/metrics", "", "", 200, "go_goroutines"},
		{"metrics of all with permission for one node", []string{"a"}, "port", "/metrics", "", "", 403, ""},
		{"health of all as metrics", []string{""}, "port", "/metrics/slis", "", "", 200, `kubernetes_healthcheck{name="node",type="healthz"} 1`},
		{"health of all as metrics with permission for one node", []string{"a"}, "port", "/metrics/slis", "", "", 403, ""},
		{"usage of nobody knows whom", []string{""}, "port", "/metrics/cadvisor", "", "", 421, "several nodes"},
		{"nowhere", []string{"a"}, "a", "/nowhere", "", "a", 404, ""},
	} {
		asked, auth.nodes = nil, tc.may
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+tc.host+tc.path, nil)
		if tc.at != "" {
			addr := &net.TCPAddr{IP: net.ParseIP(tc.at), Port: 10250}
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(addr)))
		}
		answer := httptest.NewRecorder()
		f.server.handler.ServeHTTP(answer, req)
		if len(asked) != 1 || asked[0] != tc.asked || answer.Code != tc.status || !strings.Contains(answer.Body.String(), tc.body) {
			t.Errorf("%s: permission was asked for %q, got %d %q; want %q, %d, %q",
				tc.name, asked, answer.Code, answer.Body, tc.asked, tc.status, tc.body)
		}
		if tc.path == "/pods" && tc.status == 200 && strings.Count(answer.Body.String(), `"nodeName"`) != 1 {
			t.Errorf("%s: got pods of others too: %s", tc.name, answer.Body)
		}
	}

	asked = nil
	answer := httptest.NewRecorder()
	f.server.handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://port/containerLogs//ns/pod-b/main", nil))
	if answer.Code != http.StatusUnauthorized || len(asked) != 0 {
		t.Errorf("a path in a strange form: got %d, and the program was asked about %q", answer.Code, asked)
	}

	answer = httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://port"+logs+"pod-a/main", nil))
	if answer.Code != http.StatusMisdirectedRequest {
		t.Errorf("past the server, which decides for which node permission is needed: got %d", answer.Code)
	}
}

func TestFleetNodesShareThePort(t *testing.T) {
	f, _ := startFleet(t, WithInsecureUnauthenticatedServer())
	port := f.Node("a").cfg.NodeSpec.Status.DaemonEndpoints.KubeletEndpoint.Port
	for _, n := range f.Nodes() {
		spec := n.cfg.NodeSpec
		if got := spec.Status.DaemonEndpoints.KubeletEndpoint.Port; got == 0 || got != port {
			t.Errorf("node %s names the port %d, node a %d", n.name, got, port)
		}
		if spec.Name != n.name || spec.Labels[corev1.LabelHostname] != n.name {
			t.Errorf("node %s is called %q, with the host name %q", n.name, spec.Name, spec.Labels[corev1.LabelHostname])
		}
	}
	if err := f.Node("a").Run(t.Context()); err == nil || !strings.Contains(err.Error(), "its fleet") {
		t.Errorf("Run of a single one: got %v", err)
	}
	if f.Node("foreign") != nil {
		t.Error("there is a node that was not asked for")
	}
}

func TestNewFleetErrors(t *testing.T) {
	outsideCluster(t)
	boom := errors.New("boom")
	client := WithClient(fake.NewClientset())
	fails := func(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
		if cfg.Node.Name == "b" {
			return nil, nil, boom
		}
		return newMemory(), nil, nil
	}
	for _, tc := range []struct {
		name  string
		nodes []string
		make  NewProviderFunc
		opts  []NodeOpt
		want  string
	}{
		{"no nodes", nil, makeNamed, []NodeOpt{client}, "no node names"},
		{"twice", []string{"a", "a"}, makeNamed, []NodeOpt{client}, "comes twice"},
		{"no provider function", []string{"a"}, nil, []NodeOpt{client}, "provider"},
		{"provider", []string{"a", "b"}, fails, []NodeOpt{client}, "node b: make provider: boom"},
		{"named", []string{"a"}, makeNamed, []NodeOpt{client, func(cfg *NodeConfig) error { cfg.NodeSpec.Name = "x"; return nil }}, `named "x"`},
		{"no client", []string{"a"}, makeNamed, nil, "make a client of the API server"},
	} {
		if f, err := NewFleet(tc.nodes, tc.make, tc.opts...); err == nil || f != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.want)
		}
	}
	before := goleak.IgnoreCurrent()
	if _, err := NewFleet([]string{"a", "b"}, makeNamed, client); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestFleetLimits: the limits of heartbeats and the interval of lease renewals fit the number of nodes.
func TestFleetLimits(t *testing.T) {
	for _, tc := range []struct {
		nodes     int
		wantQPS   float32
		wantBurst int
	}{{0, 50, 100}, {1, 50, 100}, {1000, 5045, 10090}} {
		cfg := NodeConfig{fleet: tc.nodes}
		if qps, burst := cfg.heartbeatLimits(); qps != tc.wantQPS || burst != tc.wantBurst {
			t.Errorf("%d nodes: got %v, %d", tc.nodes, qps, burst)
		}
		if d := cfg.renewInterval(); d < 9500*time.Millisecond || d > 10500*time.Millisecond || tc.nodes < 2 && d != 10*time.Second {
			t.Errorf("%d nodes renew a lease every %s", tc.nodes, d)
		}
	}
}
