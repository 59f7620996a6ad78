// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

func TestPortInUseComesBeforeTheNode(t *testing.T) {
	outsideCluster(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	client := fake.NewClientset()
	n, err := NewNode("n1", newMemory().asProvider, WithClient(client),
		WithTLSConfig(WithKeyPairFromPath(testpki.New(t).Issue(t, "n1"))), func(cfg *NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr = hello, taken.Addr().String()
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("Run: got %v, want an error with the address", err)
	}
	if len(client.Actions()) != 0 {
		t.Errorf("the node has sent %v", client.Actions())
	}
	if err := n.WaitReady(t.Context(), 0); err == nil || !strings.HasPrefix(err.Error(), "controller exited before ready: ") || !errors.Is(err, n.Err()) {
		t.Errorf("WaitReady: got %v", err)
	}
}

// TestWaitReadyEnds: WaitReady returns when the node cannot become ready, because the API server refuses to list
// pods.
func TestWaitReadyEnds(t *testing.T) {
	outsideCluster(t)
	client := fake.NewClientset()
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	n, err := NewNode("n1", newMemory().asProvider, WithClient(client))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = n.Run(ctx) }()
	if err := n.WaitReady(ctx, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WaitReady with a time-out: got %v", err)
	}
	if n.Err() != nil {
		t.Errorf("Err while Run runs: got %v", n.Err())
	}
	cancel()
	<-n.Done()
	if err := n.WaitReady(context.Background(), 0); err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("WaitReady after the end: got %v", err)
	}
}

// TestAPIServerAwayOnlyDelays: a node that starts while the API server does not answer becomes ready later.
func TestAPIServerAwayOnlyDelays(t *testing.T) {
	outsideCluster(t)
	client := fake.NewClientset()
	var back atomic.Bool
	asked := make(chan struct{}, 1)
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if back.Load() {
			return false, nil, nil
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		return true, nil, errors.New("connection refused")
	})
	n, err := NewNode("n1", newMemory().asProvider, WithClient(client))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = n.Run(ctx) }()
	<-asked
	if err := n.WaitReady(ctx, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the API server is away: got %v, want that the node waits", err)
	}
	back.Store(true)
	if err := n.WaitReady(ctx, 30*time.Second); err != nil {
		t.Errorf("after it is back: %v", err)
	}
	cancel()
	<-n.Done()
}

// TestControllerErrorEndsTheNode: an invalid number of workers makes the pod controller fail, and the node ends
// with its error.
func TestControllerErrorEndsTheNode(t *testing.T) {
	outsideCluster(t)
	n, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()))
	if err != nil {
		t.Fatal(err)
	}
	n.cfg.NumWorkers = -1
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "run pod controller") {
		t.Errorf("Run: got %v, want the error of the pod controller", err)
	}
	select {
	case <-n.NodeController().Done():
	default:
		t.Error("the node controller still runs")
	}
}

// downProvider is a node provider whose backend is not reachable.
type downProvider struct{ node.NaiveNodeProvider }

func (downProvider) Ping(context.Context) error { return errors.New("backend is away") }

func TestBackendAwayStillRegisters(t *testing.T) {
	m := newMemory()
	r := start(t, func(ProviderConfig) (Provider, node.NodeProvider, error) { return m, downProvider{}, nil })
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			t.Error("the node is Ready although its backend is away")
		}
	}
}
