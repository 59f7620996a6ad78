// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// world is the environment of one row: a node in this process, its API server behind a proxy that injects
// faults, its backend, and views of the API server that no fault touches.
type world struct {
	*testing.T
	api       *testapi.API
	proxy     *faultproxy.Proxy
	namespace string
	nodeName  string
	backend   *memory.Backend
	calls     *calls

	pods   *view[*corev1.Pod]
	nodes  *view[*corev1.Node]
	leases *view[*coordinationv1.Lease]

	opts []nodeutil.NodeOpt // for launch; set before it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	api := testapi.Start(t)
	proxy, err := faultproxy.Start(api.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	w := &world{
		T: t, api: api, proxy: proxy, namespace: api.Namespace(t), nodeName: api.NodeName(t),
		backend: memory.New(), calls: &calls{},
	}
	core, coordination := api.Client.CoreV1().RESTClient(), api.Client.CoordinationV1().RESTClient()
	w.pods = watchAll(t, query{client: core, resource: "pods", namespace: w.namespace}, &corev1.Pod{})
	w.nodes = watchAll(t, query{client: core, resource: "nodes", name: w.nodeName}, &corev1.Node{})
	w.leases = watchAll(t, query{
		client: coordination, resource: "leases", namespace: corev1.NamespaceNodeLease, name: w.nodeName,
	}, &coordinationv1.Lease{})
	t.Cleanup(func() {
		for _, fault := range w.backend.Faults() {
			t.Errorf("at the backend: %s", fault)
		}
	})
	return w
}

// process is one life of the node's daemon.
type process struct {
	life
	stop func() // ends Run and waits for it
}

// life is a node of its own, or a node that daemons share.
type life interface {
	testnode.Node
	Ready() <-chan struct{}
	WaitReady(ctx context.Context, timeout time.Duration) error
}

// shared is the only node of a fleet.
type shared struct {
	*nodeutil.Fleet
	ready chan struct{}
}

// newShared returns the only node of a fleet. Its provider is made when the fleet has its share.
func newShared(name string, provider nodeutil.NewProviderFunc, opts ...nodeutil.NodeOpt) (*shared, error) {
	f, err := nodeutil.NewFleet([]string{name}, provider, append(opts, func(cfg *nodeutil.NodeConfig) error {
		cfg.ShareNodes = "group-" + name[max(0, len(name)-20):]
		return nil
	})...)
	if err != nil {
		return nil, err
	}
	s := &shared{f, make(chan struct{})}
	go func() {
		select {
		case <-f.Ready():
		case <-f.Done():
			return
		}
		n := f.Node(name)
		for ; n == nil; n = f.Node(name) { // its share is known before its nodes are created
			select {
			case <-time.After(10 * time.Millisecond):
			case <-f.Done():
				return
			}
		}
		select {
		case <-n.Ready():
			close(s.ready)
		case <-f.Done():
		}
	}()
	return s, nil
}

// Ready returns a channel that is closed when the node is ready.
func (s *shared) Ready() <-chan struct{} { return s.ready }

// WaitReady waits until the node is ready.
func (s *shared) WaitReady(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-s.ready:
		return nil
	case <-s.Done():
		return s.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start runs the node and waits until it is ready. It ends with the test.
func (w *world) start() *process {
	w.Helper()
	p := w.launch()
	if err := p.WaitReady(w.Context(), patience); err != nil {
		w.Fatalf("start node %s: %v", w.nodeName, err)
	}
	return p
}

// launch runs the node, through the proxy.
func (w *world) launch() *process {
	w.Helper()
	kubeconfig, err := w.proxy.Kubeconfig(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	opts := append([]nodeutil.NodeOpt{testnode.Roomy, func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeconfigPath = kubeconfig
		return nil
	}}, w.opts...)
	var n life
	if faultrow.Shared() {
		n, err = newShared(w.nodeName, w.newProvider, opts...)
	} else {
		n, err = nodeutil.NewNode(w.nodeName, w.newProvider, opts...)
	}
	if err != nil {
		w.Fatalf("make node %s: %v", w.nodeName, err)
	}
	return &process{life: n, stop: testnode.Run(w.T, "node "+w.nodeName, n, testnode.Options{})}
}

// limited returns an option that limits the node's requests for pods per second.
func limited(qps float32, burst int) nodeutil.NodeOpt {
	return func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeAPIQPS, cfg.KubeAPIBurst = qps, burst
		return nil
	}
}

// sleep waits while a fault lasts.
func (w *world) sleep(d time.Duration) {
	w.Helper()
	select {
	case <-time.After(d):
	case <-w.Context().Done():
		w.Fatal(context.Cause(w.Context()))
	}
}

// alive checks that the daemon has not ended.
func (w *world) alive(p *process) {
	w.Helper()
	select {
	case <-p.Done():
		w.Errorf("the node ended: %v", p.Err())
	default:
	}
}
