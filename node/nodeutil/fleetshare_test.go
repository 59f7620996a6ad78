// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// shared is a backend that several processes reach: one memory for each node, which outlives them.
type shared struct {
	mu      sync.Mutex
	nodes   map[string]*memory
	creates map[string]int // guarded by mu: by pod
}

// counted is the provider of one node, which counts the pods that are created.
type counted struct {
	*memory
	all *shared
}

func (c counted) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	c.all.mu.Lock()
	c.all.creates[pod.Name]++
	c.all.mu.Unlock()
	return c.memory.CreatePod(ctx, pod)
}

func (s *shared) provider(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[cfg.Node.Name] == nil {
		s.nodes[cfg.Node.Name] = newMemory()
	}
	return counted{s.nodes[cfg.Node.Name], s}, nil, nil
}

// process is one that shares nodes.
type process struct {
	*Fleet
	stop func()
}

// names are the nodes that it runs, and that are ready.
func (p process) names() (out []string) {
	for _, n := range p.Nodes() {
		select {
		case <-n.Ready():
			out = append(out, n.name)
		default:
		}
	}
	return out
}

// inShares runs a test in a bubble, with seven nodes that have two pods each. start begins a process; its nodes have ended when stop returns.
func inShares(t *testing.T, test func(t *testing.T, client *fake.Clientset, backend *shared, start func() process)) {
	outsideCluster(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		backend := &shared{nodes: map[string]*memory{}, creates: map[string]int{}}
		var names []string
		for i := range 7 {
			name := fmt.Sprintf("n%d", i)
			names = append(names, name)
			for j := range 2 {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s-%d", name, j), UID: types.UID(fmt.Sprintf("%s-%d", name, j))},
					Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "main"}}},
				}
				if err := client.Tracker().Add(pod); err != nil {
					t.Fatal(err)
				}
			}
		}
		test(t, client, backend, func() process {
			f, err := NewFleet(names, backend.provider, WithClient(client), func(cfg *NodeConfig) error {
				cfg.ShareNodes = "group"
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = f.Run(ctx) }() // Err has the error
			stop := func() {
				cancel()
				<-f.Done()
			}
			t.Cleanup(stop)
			return process{f, stop}
		})
	})
}

// TestProcessesShareNodes: each node runs in exactly one process, evenly, when processes come and go, and its pods are left alone.
func TestProcessesShareNodes(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, backend *shared, start func() process) {
		even := func(what string, all ...process) {
			t.Helper()
			var running []string
			least, most := 7, 0
			for _, p := range all {
				names := p.names()
				least, most = min(least, len(names)), max(most, len(names))
				running = append(running, names...)
			}
			slices.Sort(running)
			if got := strings.Join(running, " "); got != "n0 n1 n2 n3 n4 n5 n6" || most-least > 1 {
				t.Errorf("%s: the nodes %s run, from %d to %d in a process", what, got, least, most)
			}
		}
		a := start()
		if err := a.WaitReady(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		even("one process", a)
		b, c := start(), start()
		time.Sleep(15 * time.Second)
		even("three processes", a, b, c)
		b.stop()
		time.Sleep(10 * time.Second)
		even("two processes", a, c)
		d := start()
		time.Sleep(15 * time.Second)
		even("three again", a, c, d)
		a.stop()
		c.stop()
		time.Sleep(10 * time.Second)
		even("the last", d)
		if len(backend.creates) != 14 {
			t.Errorf("%d pods were created, want 14", len(backend.creates))
		}
		for name, n := range backend.creates {
			if n != 1 {
				t.Errorf("pod %s was created %d times", name, n)
			}
		}
	})
}

// TestSharedNodesNeedRights: a process that may not see the others ends, and says what it lacks.
func TestSharedNodesNeedRights(t *testing.T) {
	inShares(t, func(t *testing.T, client *fake.Clientset, _ *shared, start func() process) {
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("leases"), "", errors.New("no"))
		})
		p := start()
		<-p.Done()
		if err := p.Err(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "share nodes: list leases in kube-node-lease") {
			t.Errorf("got %v", err)
		}
	})
}

func TestShareNodesErrors(t *testing.T) {
	outsideCluster(t)
	for group, cfg := range map[string]NodeConfig{
		"Upper": {ShareNodes: "Upper"}, strings.Repeat("a", 51): {ShareNodes: strings.Repeat("a", 51)}, "group": {ShareNodes: "group", DisableLeaseGuard: true},
	} {
		_, err := NewFleet([]string{"a"}, makeNamed, WithClient(fake.NewClientset()), func(c *NodeConfig) error {
			c.ShareNodes, c.DisableLeaseGuard = cfg.ShareNodes, cfg.DisableLeaseGuard
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "ShareNodes") {
			t.Errorf("%s: got %v", group, err)
		}
	}
	if _, err := NewNode("a", makeNamed, WithClient(fake.NewClientset()), func(c *NodeConfig) error { c.ShareNodes = "group"; return nil }); err == nil {
		t.Error("a single node is shared: want an error, as nobody would share it")
	}
}
