// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// running is a node that runs in the background of a test.
type running struct {
	*Node
	client *fake.Clientset
	stop   context.CancelFunc
}

// start runs a node on loopback and waits until it is ready. The end of the test stops the node and checks the
// error of Run.
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

// TestNodeIsReadyFromItsFirstWrite: a restarted node, or a node that another process acted for until now, never
// becomes unready in between.
func TestNodeIsReadyFromItsFirstWrite(t *testing.T) {
	r := start(t, newMemory().asProvider)
	for _, action := range r.client.Actions() {
		create, ok := action.(clienttesting.CreateAction)
		if !ok || action.GetResource().Resource != "nodes" {
			continue
		}
		for _, c := range create.GetObject().(*corev1.Node).Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				t.Errorf("the node is registered as %+v, want ready", c)
			}
		}
		return
	}
	t.Error("the node was not registered")
}

// TestProviderReadsItsNodeWhileItStarts: a provider may keep ProviderConfig.Node and read it later, so the node
// must not write to it. The race detector finds a write.
func TestProviderReadsItsNodeWhileItStarts(t *testing.T) {
	m := newMemory()
	var reads sync.WaitGroup
	registered := make(chan struct{})
	start(t, func(c ProviderConfig) (Provider, node.NodeProvider, error) {
		reads.Go(func() {
			for {
				select {
				case <-registered:
					return
				default:
					if c.Node.Name != "n1" {
						t.Error("the node has lost its name")
					}
				}
			}
		})
		return m.asProvider(c)
	})
	close(registered)
	reads.Wait()
}

func TestProviderKnowsWhenAllIsListed(t *testing.T) {
	m, before, listed := newMemory(), true, func() bool { return false }
	start(t, func(c ProviderConfig) (Provider, node.NodeProvider, error) {
		before, listed = c.Listed(), c.Listed
		return m.asProvider(c)
	})
	if before || !listed() {
		t.Errorf("Listed is %t before Run, and %t in a node that is ready", before, listed())
	}
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
	ca := testpki.New(t)
	m := newMemory()
	mux := http.NewServeMux()
	r := start(t, m.asProvider,
		WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))), AttachProviderRoutes(mux), WithInsecureUnauthenticatedServer(),
		func(cfg *NodeConfig) error { cfg.Handler = mux; return nil })
	r.pods.Kick()
	r.events.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}, "Normal", "Test", "an event")

	r.stop()
	select {
	case <-r.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("Run did not end within 30 s")
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "run before") {
		t.Errorf("a second Run: got %v", err)
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
