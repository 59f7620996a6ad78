// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	slogadapter "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// world is what one row works with: a node in this process, its API server behind a proxy that
// breaks what passes, its backend, and views of the API server that no fault touches.
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
	*nodeutil.Node
	stop func() // ends Run and waits for it
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
	opts := append([]nodeutil.NodeOpt{roomy, func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeconfigPath = kubeconfig
		return nil
	}}, w.opts...)
	n, err := nodeutil.NewNode(w.nodeName, w.newProvider, opts...)
	if err != nil {
		w.Fatalf("make node %s: %v", w.nodeName, err)
	}
	said := &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ctx = log.WithLogger(ctx, slogadapter.FromSlog(slog.New(slog.NewTextHandler(said, nil))))
	stop := sync.OnceFunc(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			w.Errorf("node %s ended with %v, want the end of its context", w.nodeName, err)
		}
	})
	w.Cleanup(func() {
		stop()
		if w.Failed() {
			w.Logf("node %s said:\n%s", w.nodeName, said.tail())
		}
	})
	go func() { _ = n.Run(ctx) }() // Err has the error
	return &process{Node: n, stop: stop}
}

// roomy makes a node for many pods.
func roomy(cfg *nodeutil.NodeConfig) error {
	cfg.NodeSpec.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("10k"),
		corev1.ResourceMemory: resource.MustParse("10Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	cfg.NodeSpec.Status.Allocatable = cfg.NodeSpec.Status.Capacity
	return nil
}

// limited makes a node that sends so many requests a second for pods.
func limited(qps float32, burst int) nodeutil.NodeOpt {
	return func(cfg *nodeutil.NodeConfig) error {
		cfg.KubeAPIQPS, cfg.KubeAPIBurst = qps, burst
		return nil
	}
}

// sleep lets a fault last.
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

// lockedBuffer holds the log of a node.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// tail returns the end of it, which is what a failure is about.
func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	const limit = 6 << 10
	all := b.buf.Bytes()
	return string(all[max(0, len(all)-limit):])
}
