// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// shared is a backend that several processes use. It has one memory provider per node, and outlives the processes.
type shared struct {
	making func(node string) error // called before a provider is created, if not nil

	mu      sync.Mutex
	nodes   map[string]*memory       // guarded by mu
	creates map[string]int           // guarded by mu: by pod
	broken  map[string]time.Duration // guarded by mu; after this time the provider of the node fails, once
}

// counted is the provider of one node, and counts the pods that it creates.
type counted struct {
	*memory
	node string
	all  *shared
}

func (c counted) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	c.all.mu.Lock()
	c.all.creates[pod.Name]++
	c.all.mu.Unlock()
	return c.memory.CreatePod(ctx, pod)
}

// RunInBackground fails once if the node is broken.
func (c counted) RunInBackground(ctx context.Context) error {
	c.all.mu.Lock()
	after, broken := c.all.broken[c.node]
	delete(c.all.broken, c.node)
	c.all.mu.Unlock()
	if broken {
		select {
		case <-time.After(after):
			return errors.New("broken")
		case <-ctx.Done():
		}
	}
	<-ctx.Done()
	return nil
}

func (s *shared) provider(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
	if s.making != nil {
		if err := s.making(cfg.Node.Name); err != nil {
			return nil, nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[cfg.Node.Name] == nil {
		s.nodes[cfg.Node.Name] = newMemory()
	}
	return counted{s.nodes[cfg.Node.Name], cfg.Node.Name, s}, nil, nil
}

// process is a process that shares nodes with other processes.
type process struct {
	*Fleet
	stop func()
}

// names returns the names of the ready nodes that the process runs.
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

// versioned makes updates of leases conflict as on an API server: if two updates have the same resource version, one fails. The tracker of
// the fake client does not do this.
func versioned(client *fake.Clientset) {
	written := 0
	client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		gvr, lease := action.GetResource(), action.(clienttesting.UpdateAction).GetObject().DeepCopyObject().(*coordinationv1.Lease)
		old, err := client.Tracker().Get(gvr, lease.Namespace, lease.Name)
		if err != nil {
			return true, nil, err
		}
		if old.(*coordinationv1.Lease).ResourceVersion != lease.ResourceVersion {
			return true, nil, apierrors.NewConflict(gvr.GroupResource(), lease.Name, errors.New("the object has been modified"))
		}
		written++
		lease.ResourceVersion = strconv.Itoa(written)
		return true, lease, client.Tracker().Update(gvr, lease, lease.Namespace)
	})
}

// inShares runs a test in a synctest bubble with seven nodes, each with two pods. start starts a process. The function stop of a process
// returns when its nodes have ended.
func inShares(t *testing.T, test func(t *testing.T, client *fake.Clientset, backend *shared, start func() process)) {
	outsideCluster(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		versioned(client)
		backend := &shared{nodes: map[string]*memory{}, creates: map[string]int{}, broken: map[string]time.Duration{}}
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
			go func() { _ = f.Run(ctx) }() // f.Err returns the error
			stop := func() {
				cancel()
				<-f.Done()
			}
			t.Cleanup(stop)
			return process{f, stop}
		})
	})
}

// TestProcessesShareNodes: while processes come and go, each node runs in exactly one process, and the shares stay even. The pods are not
// restarted.
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

// TestOneNodeThatFailsIsTriedAgain: one node cannot make its provider, and the provider of another node ends by itself. The other nodes
// run. The two nodes run after the faults are over.
func TestOneNodeThatFailsIsTriedAgain(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, backend *shared, start func() process) {
		var fails atomic.Bool
		fails.Store(true)
		var first atomic.Value // the first node to be created; until it succeeds, no other node has been created
		backend.making = func(node string) error {
			if first.CompareAndSwap(nil, node); first.Load() == node && fails.Load() {
				return errors.New("no")
			}
			return nil
		}
		backend.broken["n5"] = 0
		p := start()
		time.Sleep(8 * time.Second)
		want := slices.DeleteFunc([]string{"n0", "n1", "n2", "n3", "n4", "n5", "n6"}, func(name string) bool { return name == "n5" || name == first.Load() })
		if got := p.names(); !slices.Equal(got, want) {
			t.Errorf("the nodes %v run, want %v", got, want)
		}
		fails.Store(false)
		time.Sleep(4 * shareRetry)
		if got := strings.Join(p.names(), " "); got != "n0 n1 n2 n3 n4 n5 n6" {
			t.Errorf("at last the nodes %s run", got)
		}
	})
}

// TestNodesThatEndDoNotKeepOthersDown: a node restarts after its own pause, although another node ends every few
// seconds.
func TestNodesThatEndDoNotKeepOthersDown(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, backend *shared, start func() process) {
		for i := range 7 {
			backend.broken[fmt.Sprint("n", i)] = time.Duration(i) * shareRetry / 2
		}
		p := start()
		time.Sleep(8*time.Second + shareRetry)
		if got := p.names(); !slices.Contains(got, "n0") {
			t.Errorf("the nodes %v run, and n0, which ended first, does not", got)
		}
	})
}

// TestNoNodeCanBeMade: if no node can make its provider, the fault is the same for all nodes, and the process
// ends with the error.
func TestNoNodeCanBeMade(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, backend *shared, start func() process) {
		boom := errors.New("boom")
		backend.making = func(string) error { return boom }
		p := start()
		<-p.Done()
		if !errors.Is(p.Err(), boom) {
			t.Errorf("got %v", p.Err())
		}
	})
}

// TestSlowProvidersHoldUpNothing: a stopped process ends although providers are being made, and makes no further
// providers.
func TestSlowProvidersHoldUpNothing(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, backend *shared, start func() process) {
		var made atomic.Int32
		backend.making = func(string) error {
			made.Add(1)
			time.Sleep(time.Second)
			return nil
		}
		p := start()
		time.Sleep(4 * time.Second)
		before, began := made.Load(), time.Now()
		p.stop()
		if took := time.Since(began); took > 3*time.Second || made.Load() > before+1 {
			t.Errorf("it ended %v later, and made %d more providers meanwhile", took, made.Load()-before)
		}
	})
}

// TestNodesThatGoLeaveNothing: when another process takes a node, this process drops the pods and callbacks of
// the node.
func TestNodesThatGoLeaveNothing(t *testing.T) {
	inShares(t, func(t *testing.T, _ *fake.Clientset, _ *shared, start func() process) {
		a := start()
		time.Sleep(5 * time.Second)
		pods, callbacks := a.objects.Kept()
		if pods != 14 || callbacks != 7 {
			t.Fatalf("with all nodes: %d pods, and %d who follow changes", pods, callbacks)
		}
		for range 3 {
			b := start()
			time.Sleep(15 * time.Second)
			n := len(a.names())
			if pods, callbacks := a.objects.Kept(); pods != 2*n || callbacks != n {
				t.Errorf("with %d nodes: %d pods, and %d who follow changes", n, pods, callbacks)
			}
			b.stop()
			time.Sleep(10 * time.Second)
		}
		if pods, callbacks := a.objects.Kept(); pods != 14 || callbacks != 7 {
			t.Errorf("with all nodes again: %d pods, and %d who follow changes", pods, callbacks)
		}
	})
}

// TestOneSharedNodeAndItsServer: a process that does not hold the only node answers health checks itself.
func TestOneSharedNodeAndItsServer(t *testing.T) {
	outsideCluster(t)
	f, err := NewFleet([]string{"a"}, makeNamed, WithClient(fake.NewClientset()), func(cfg *NodeConfig) error { cfg.ShareNodes = "g"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if got := f.askedFor(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://port/healthz", nil)); got != "" {
		t.Errorf("/healthz is asked of node %q", got)
	}
	if err := f.isWell(t.Context()); err == nil || !strings.Contains(err.Error(), "no share") {
		t.Errorf("before it has joined: got %v", err)
	}
}

// TestOtherNodesAreAnotherGroup: processes with different nodes are in different groups, even if the groups have
// the same name. The order of the nodes does not matter.
func TestOtherNodesAreAnotherGroup(t *testing.T) {
	outsideCluster(t)
	group := func(names ...string) string {
		f, err := NewFleet(names, makeNamed, WithClient(fake.NewClientset()), func(cfg *NodeConfig) error {
			cfg.ShareNodes = strings.Repeat("g", maxGroupName)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if problems := validation.IsDNS1123Label(f.group.Member()); len(problems) > 0 {
			t.Errorf("member %q: %v", f.group.Member(), problems)
		}
		return f.group.Member()[:maxGroupName+9]
	}
	if group("a", "b") != group("b", "a") || group("a", "b") == group("a", "c") {
		t.Errorf("the groups of a and b: %s, of b and a: %s, of a and c: %s", group("a", "b"), group("b", "a"), group("a", "c"))
	}
}

// TestSharedNodesNeedRights: a process without the right to see the other processes ends, and its error names
// the missing right.
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
