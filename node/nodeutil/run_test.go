// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// running is a node in the middle of Run.
type running struct {
	*Node
	client *fake.Clientset
	stop   context.CancelFunc
}

// start runs a node on loopback and waits until it is ready. The test's end stops it and
// checks what Run returned.
func start(t *testing.T, make NewProviderFunc, opts ...NodeOpt) *running {
	t.Helper()
	outsideCluster(t)
	r := &running{client: fake.NewClientset()}
	opts = append([]NodeOpt{WithClient(r.client), func(cfg *NodeConfig) error {
		cfg.HTTPListenAddr = "127.0.0.1:0"
		return nil
	}}, opts...)
	var err error
	if r.Node, err = NewNode("n1", make, opts...); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { _ = r.Run(ctx) }()
	t.Cleanup(func() {
		r.stop()
		<-r.Done()
		if err := r.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want that the context was cancelled", err)
		}
	})
	if err := r.WaitReady(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunRegistersAReadyNode(t *testing.T) {
	r := start(t, newMemory().asProvider)
	changes, err := r.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Status.Phase != corev1.NodeRunning {
		n = waitEvent(t, changes, func(n *corev1.Node) bool { return n.Status.Phase == corev1.NodeRunning })
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status != corev1.ConditionTrue || c.Reason != "KubeletReady" || c.Message != "Kubelet is ready" ||
			c.LastHeartbeatTime.IsZero() || c.LastTransitionTime.IsZero() {
			t.Errorf("Ready condition: got %+v", c)
		}
		return
	}
	t.Error("no Ready condition")
}

func TestRunHandlesPods(t *testing.T) {
	m := newMemory()
	r := start(t, m.asProvider)
	changes, err := r.client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1"},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
	}
	if _, err := r.client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if _, err := m.GetPod(t.Context(), "ns", "p"); err != nil {
		t.Error(err)
	}
}

func TestRunLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	ca := newAuthority(t)
	m := newMemory()
	mux := http.NewServeMux()
	r := start(t, m.asProvider,
		WithTLSConfig(WithKeyPairFromPath(ca.issue(t, "n1"))), AttachProviderRoutes(mux), WithInsecureUnauthenticatedServer(),
		func(cfg *NodeConfig) error { cfg.Handler = mux; return nil })
	r.pods.Kick()
	r.events.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}, "Normal", "Test", "an event")

	r.stop()
	select {
	case <-r.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("Run did not end within 5 s")
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "run before") {
		t.Errorf("a second Run: got %v", err)
	}
}

func TestPortInUseComesBeforeTheNode(t *testing.T) {
	outsideCluster(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	client := fake.NewClientset()
	n, err := NewNode("n1", newMemory().asProvider, WithClient(client),
		WithTLSConfig(WithKeyPairFromPath(newAuthority(t).issue(t, "n1"))), func(cfg *NodeConfig) error {
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

// TestWaitReadyEnds has an API server that refuses to list pods, so the node never gets ready.
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

// TestControllerErrorEndsTheNode breaks the pod controller by its number of workers.
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

// downProvider cannot be reached.
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

func waitEvent[T runtime.Object](t *testing.T, w watch.Interface, good func(T) bool) T {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case e := <-w.ResultChan():
			if obj, ok := e.Object.(T); ok && good(obj) {
				return obj
			}
		case <-timeout:
			t.Fatal("the change did not come within 10 s")
		}
	}
}
