// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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

// nodeAPI is an API server in memory for one node and its lease. Requests of the controller go through nodes and leases, where they are
// recorded and can fail; requests of other clients go through the clientset.
type nodeAPI struct {
	t      *testing.T
	others *fake.Clientset
	nodes  v1.NodeInterface
	leases coordclientset.LeaseInterface

	mu       sync.Mutex
	requests []string                                        // guarded by mu: "patch node/status {...}"
	fault    func(ctx context.Context, request string) error // guarded by mu; nil: no faults
	strip    func(*corev1.Node)                              // set before use: removes fields that this server does not support
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
	if err := n.api.request(ctx, "create node "+strings.Join(slices.Sorted(maps.Keys(node.Labels)), ",")); err != nil {
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
