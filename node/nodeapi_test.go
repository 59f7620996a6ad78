// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

const testNodeName = "virtual-1"

var errAPIDown = errors.New("connection refused")

// nodeAPI is an API server in memory for one node and its lease. Requests of
// the controller go through nodes and leases, where they are recorded and can
// fail; requests of others go through the clientset and are neither.
type nodeAPI struct {
	t      *testing.T
	others *fake.Clientset
	nodes  v1.NodeInterface
	leases coordclientset.LeaseInterface

	mu       sync.Mutex
	requests []string                                        // guarded by mu: "patch node/status {...}"
	fault    func(ctx context.Context, request string) error // guarded by mu; nil means none
	strip    func(*corev1.Node)                              // set before use: drops what this server does not know
}

func newNodeAPI(t *testing.T, objects ...runtime.Object) *nodeAPI {
	t.Helper()
	api := &nodeAPI{t: t, others: plainClientset(objects...)}
	created := 0
	api.others.PrependReactor("create", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created++
		node := action.(clienttesting.CreateAction).GetObject().(*corev1.Node)
		node.UID = types.UID(fmt.Sprintf("uid-%d", created))
		return false, nil, nil
	})
	api.nodes = recordedNodes{api.others.CoreV1().Nodes(), api}
	api.leases = recordedLeases{api.others.CoordinationV1().Leases(corev1.NamespaceNodeLease), api}
	return api
}

// plainClientset is fake.NewClientset without the tracking of field managers,
// which takes most of the time of a test that lasts for hours of fake time.
func plainClientset(objects ...runtime.Object) *fake.Clientset {
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	for _, object := range objects {
		if err := tracker.Add(object); err != nil {
			panic(err)
		}
	}
	clientset := &fake.Clientset{}
	clientset.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	clientset.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		return true, events, err
	})
	return clientset
}

func (a *nodeAPI) request(ctx context.Context, request string) error {
	a.mu.Lock()
	a.requests = append(a.requests, request)
	fault := a.fault
	a.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(ctx, request)
}

func (a *nodeAPI) setFault(fault func(ctx context.Context, request string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

// taken returns the requests since the last call that begin with prefix.
func (a *nodeAPI) taken(prefix string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			found = append(found, r)
		}
	}
	a.requests = nil
	return found
}

func (a *nodeAPI) node() *corev1.Node {
	a.t.Helper()
	node, err := a.others.CoreV1().Nodes().Get(a.t.Context(), testNodeName, metav1.GetOptions{})
	if err != nil {
		a.t.Fatalf("get node: %v", err)
	}
	return node
}

func (a *nodeAPI) lease() *coordinationv1.Lease {
	a.t.Helper()
	lease, err := a.others.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(a.t.Context(), testNodeName, metav1.GetOptions{})
	if err != nil {
		a.t.Fatalf("get lease: %v", err)
	}
	return lease
}

// change changes the node as another writer would.
func (a *nodeAPI) change(change func(*corev1.Node)) {
	a.t.Helper()
	node := a.node().DeepCopy()
	change(node)
	if _, err := a.others.CoreV1().Nodes().Update(a.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		a.t.Fatalf("update node: %v", err)
	}
}

func (a *nodeAPI) deleteNode() {
	a.t.Helper()
	if err := a.others.CoreV1().Nodes().Delete(a.t.Context(), testNodeName, metav1.DeleteOptions{}); err != nil {
		a.t.Fatalf("delete node: %v", err)
	}
}

type recordedNodes struct {
	v1.NodeInterface
	api *nodeAPI
}

func (n recordedNodes) Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Node, error) {
	if err := n.api.request(ctx, "get node"); err != nil {
		return nil, err
	}
	return n.NodeInterface.Get(ctx, name, opts)
}

func (n recordedNodes) Create(ctx context.Context, node *corev1.Node, opts metav1.CreateOptions) (*corev1.Node, error) {
	if err := n.api.request(ctx, "create node "+strings.Join(sortedKeys(node.Labels), ",")); err != nil {
		return nil, err
	}
	return n.NodeInterface.Create(ctx, node.DeepCopy(), opts)
}

func (n recordedNodes) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Node, error) {
	path := strings.Join(append([]string{"node"}, sub...), "/")
	if err := n.api.request(ctx, "patch "+path+" "+string(body)); err != nil {
		return nil, err
	}
	node, err := n.NodeInterface.Patch(ctx, name, kind, body, opts, sub...)
	if err != nil || n.api.strip == nil {
		return node, err
	}
	node = node.DeepCopy()
	n.api.strip(node)
	return n.NodeInterface.Update(ctx, node, metav1.UpdateOptions{})
}

func (n recordedNodes) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if err := n.api.request(ctx, "watch node"); err != nil {
		return nil, err
	}
	return n.NodeInterface.Watch(ctx, opts)
}

type recordedLeases struct {
	coordclientset.LeaseInterface
	api *nodeAPI
}

func (l recordedLeases) Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.api.request(ctx, "get lease"); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Get(ctx, name, opts)
}

func (l recordedLeases) Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := l.api.request(ctx, "create lease"); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Create(ctx, lease, opts)
}

func (l recordedLeases) Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := l.api.request(ctx, "update lease"); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Update(ctx, lease, opts)
}

// pingScript is a NodeProvider whose Ping does what the test says.
type pingScript struct {
	mu     sync.Mutex
	script func(context.Context) error // guarded by mu; nil succeeds
	calls  int                         // guarded by mu
	active int                         // guarded by mu
	most   int                         // guarded by mu: the most calls at one time
	notify func(*corev1.Node)          // guarded by mu
}

func (p *pingScript) Ping(ctx context.Context) error {
	p.mu.Lock()
	p.calls++
	p.active++
	p.most = max(p.most, p.active)
	script := p.script
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.active--
		p.mu.Unlock()
	}()
	if script == nil {
		return nil
	}
	return script(ctx)
}

func (p *pingScript) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}

func (p *pingScript) set(script func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// atOnce returns the most Pings that ever ran at one time.
func (p *pingScript) atOnce() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

func (p *pingScript) say(node *corev1.Node) {
	p.mu.Lock()
	notify := p.notify
	p.mu.Unlock()
	notify(node)
}

func testNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: testNodeName, Labels: map[string]string{"type": "virtual-kubelet"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "virtual-kubelet.io/provider", Value: "mock", Effect: corev1.TaintEffectNoSchedule},
		}},
		Status: corev1.NodeStatus{
			Phase:    corev1.NodeRunning,
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "ready"},
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "Enough"},
			},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			NodeInfo:  corev1.NodeSystemInfo{KubeletVersion: "v1.37.1", OperatingSystem: "linux"},
		},
	}
}

// startNode runs a controller until the test ends, and checks that Run returns
// nil then. It belongs into a bubble, which fails when a goroutine stays.
func startNode(t *testing.T, p NodeProvider, node *corev1.Node, api *nodeAPI, opts ...NodeControllerOpt) (c *NodeController, stop func()) {
	t.Helper()
	c, err := NewNodeController(p, node, api.nodes, opts...)
	if err != nil {
		t.Fatalf("new node controller: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-c.Done()
		if err := c.Err(); err != nil {
			t.Errorf("Run returned %v after its context ended, want nil", err)
		}
	})
	t.Cleanup(stop)
	synctest.Wait()
	return c, stop
}

func nodeCondition(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
