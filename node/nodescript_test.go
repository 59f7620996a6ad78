// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pingScript is a NodeProvider with a scripted Ping.
type pingScript struct {
	mu     sync.Mutex
	script func(context.Context) error // guarded by mu; nil succeeds
	calls  int                         // guarded by mu
	active int                         // guarded by mu
	most   int                         // guarded by mu: the maximum of simultaneous calls
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

// atOnce returns the maximum number of simultaneous Pings.
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

// startNode runs a controller until the test ends, and checks that Run returns nil then. Call it in a bubble, which fails if a goroutine is
// leaked.
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
