// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// twins are daemons for one node: they share an API server and a backend, each through its own link.
type twins struct {
	*testing.T
	api     *memapi.API
	nodes   *fake.Clientset
	leases  *leaseServer
	backend *memory.Backend
	group   *members // nil: no group

	listTakes time.Duration // delay of the live list of pods; set before start

	mu      sync.Mutex
	told    map[string]func(*corev1.Pod) // guarded by mu: receivers of changes at the backend
	creates map[types.UID]int            // guarded by mu
	notes   []string                     // guarded by mu: the effects of each daemon, in order
}

// inTwins runs a test in a bubble.
func inTwins(t *testing.T, test func(w *twins)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &twins{
			T: t, api: memapi.New(), nodes: newNodeAPI(t).others, leases: &leaseServer{}, backend: memory.New(),
			told: map[string]func(*corev1.Pod){}, creates: map[types.UID]int{},
		}
		w.backend.Fault = func(_ context.Context, method, _ string) error {
			if method == "create" || method == "delete" {
				<-time.After(500 * time.Millisecond)
			}
			return nil
		}
		memory.Notifying{Backend: w.backend}.NotifyPods(t.Context(), w.tell)
		test(w)
		for _, fault := range w.backend.Faults() {
			t.Error(fault)
		}
		for uid, n := range w.creates {
			if n > 1 {
				t.Errorf("%d calls of CreatePod for %s succeeded, want 1", n, uid)
			}
		}
	})
}

func (w *twins) subscribe(daemon string, notify func(*corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[daemon] = notify; notify == nil {
		delete(w.told, daemon)
	}
}

// tell sends a change to every daemon.
func (w *twins) tell(pod *corev1.Pod) {
	w.mu.Lock()
	told := slices.Collect(maps.Values(w.told))
	w.mu.Unlock()
	for _, notify := range told {
		notify(pod)
	}
}

func (w *twins) mutates(daemon, verb string, pod *corev1.Pod, frozen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if frozen {
		w.Errorf("%s calls %s of %s while it is frozen: the test must not let it", daemon, verb, pod.Name)
	}
	w.notes = append(w.notes, daemon+": "+verb+" "+pod.Name)
}

func (w *twins) created(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.creates[uid]++
}

// note records an effect of a daemon: a lease renewal, a live list of pods, or a patch or removal of a pod. mutate records the calls of the
// provider.
func (w *twins) note(daemon, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, daemon+": "+what)
}

// taken returns the effects of a daemon since the last call.
func (w *twins) taken(daemon string) (did []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.notes {
		if what, ok := strings.CutPrefix(n, daemon+": "); ok {
			did = append(did, what)
		}
	}
	w.notes = nil
	return did
}

func (w *twins) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// daemon is one process with both controllers of a node.
type daemon struct {
	*link
	pods *PodController
	node *NodeController
	stop func()
}

// start starts a daemon. An earlier daemon may have had the same name.
func (w *twins) start(name string) *daemon {
	w.Helper()
	d := &daemon{link: &link{name: name, w: w}}
	ctx, cancel := context.WithCancel(w.Context())
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	client := podsBehind{d.link}
	informer := newTwinInformer(client)
	var err error
	d.pods, err = NewPodController(PodControllerConfig{
		PodClient: client, PodInformer: informer, EventRecorder: record.NewFakeRecorder(1 << 14),
		Provider:          &linkedProvider{w.backend, d.link},
		ConfigMapInformer: factory.Core().V1().ConfigMaps(), SecretInformer: factory.Core().V1().Secrets(),
		ServiceInformer: factory.Core().V1().Services(), NodeName: "n",
	})
	if err != nil {
		w.Fatal(err)
	}
	api := &nodeAPI{t: w.T, others: w.nodes}
	api.setFault(func(ctx context.Context, _ string) error { return d.request(ctx) })
	var running sync.WaitGroup
	opts := []NodeControllerOpt{WithNodeEnableLeaseV1(linkedLeases{link: d.link}, 40), WithNodeLeaseGuard(d.pods)}
	if w.group != nil {
		opts = append(opts, d.join(ctx, &running))
	}
	d.node, err = NewNodeController(&pingScript{}, testNode(), recordedNodes{w.nodes.CoreV1().Nodes(), api}, opts...)
	if err != nil {
		w.Fatal(err)
	}
	d.node.lease.holder.ended = func(lease.Mark) bool { return false } // as on another machine
	d.node.lease.holder.claim.Self.Host = name
	factory.Start(ctx.Done())
	running.Go(func() { informer.Informer().RunWithContext(ctx) })
	running.Go(func() { _ = d.pods.Run(ctx, 4) })
	running.Go(func() { _ = d.node.Run(ctx) })
	d.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	w.Cleanup(d.crash)
	synctest.Wait()
	return d
}

// crash ends the daemon abruptly.
func (d *daemon) crash() {
	d.kill()
	d.heal()
	d.stop()
}

// acts reports whether the daemon may act for the node.
func (d *daemon) acts() bool {
	_, err := d.pods.fence.Enter(context.Background())
	return err == nil
}

// awaitActing waits until the daemon may act, and returns that time.
func (d *daemon) awaitActing(longest time.Duration) time.Duration {
	d.w.Helper()
	begin := time.Now()
	for !d.acts() {
		if time.Since(begin) > longest {
			d.w.Fatalf("%s does not act after %v", d.name, longest)
		}
		d.w.pass(100 * time.Millisecond)
	}
	return time.Since(begin)
}

// wantAgreement fails the test unless both sides have the same pods, with the
// statuses of the backend.
func (w *twins) wantAgreement() {
	w.Helper()
	list, err := w.api.Pods("").List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if len(list.Items) != w.backend.Len() {
		w.Errorf("%d pods in the API server, %d at the backend", len(list.Items), w.backend.Len())
	}
	for _, pod := range list.Items {
		at := w.backend.Has(keyOf(&pod))
		switch {
		case at == nil || at.UID != pod.UID:
			w.Errorf("pod %s is not at the backend: %+v", pod.Name, pod.Status)
		case pod.Status.Phase != corev1.PodRunning || pod.Status.Message != at.Status.Message:
			w.Errorf("pod %s is %s, %q, want %s, %q", pod.Name, pod.Status.Phase, pod.Status.Message, at.Status.Phase, at.Status.Message)
		}
	}
}

// twinInformer watches pods through a link.
type twinInformer struct{ shared cache.SharedIndexInformer }

func newTwinInformer(client podsBehind) twinInformer {
	all := client.Pods("")
	return twinInformer{cache.NewSharedIndexInformer(unstreamed{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
	}}, &corev1.Pod{}, time.Minute, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

func (i twinInformer) Informer() cache.SharedIndexInformer { return i.shared }
func (i twinInformer) Lister() corev1listers.PodLister {
	return corev1listers.NewPodLister(i.shared.GetIndexer())
}

type unstreamed struct{ *cache.ListWatch }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

func twinPod(i int) string { return fmt.Sprint("p", i) }
