// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

// world is a node in a real cluster, whose plugin is a folder in a separate process.
type world struct {
	*testing.T
	api             *testapi.API
	namespace, node string
	plugin          *process
	backend         *folder
	wired           *plugin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	api := testapi.Start(t)
	dir := shortDir(t)
	w := &world{T: t, api: api, namespace: api.Namespace(t), node: api.NodeName(t), backend: &folder{dir: dir}}
	w.plugin = &process{t: t, socket: dir + "/s", folder: dir}
	w.plugin.start()
	t.Cleanup(w.plugin.kill)
	n, err := nodeutil.NewNode(w.node, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		var err error
		w.wired, err = begun(t, Config{Endpoint: w.plugin.endpoint()})
		if err != nil {
			return nil, nil, err
		}
		w.wired.ConfigureNode(t.Context(), c.Node)
		return w.wired.withAbilities(), w.wired, nil
	}, nodeutil.WithClient(api.Client), func(c *nodeutil.NodeConfig) error {
		many := resource.MustParse("1M")
		room := corev1.ResourceList{corev1.ResourceCPU: many, corev1.ResourceMemory: many, corev1.ResourcePods: many}
		c.NodeSpec.Status.Capacity, c.NodeSpec.Status.Allocatable = room, room
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = n.Run(ctx) }() // Err has the error
	t.Cleanup(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the node ended with %v", err)
		}
	})
	if err := n.WaitReady(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) create(name string, change ...func(*corev1.Pod)) types.UID {
	w.Helper()
	p := pod(name, "")
	p.Namespace, p.Spec.NodeName = w.namespace, w.node
	for _, f := range change {
		f(p)
	}
	made, err := w.api.Client.CoreV1().Pods(w.namespace).Create(w.Context(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made.UID
}

func (w *world) remove(name string) {
	w.Helper()
	if err := w.api.Client.CoreV1().Pods(w.namespace).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// awaitPod waits until ok accepts a pod.
func (w *world) awaitPod(name, what string, ok func(*corev1.Pod) bool) {
	w.Helper()
	await(w.T, fmt.Sprintf("pod %s %s", name, what), func(ctx context.Context) (watch.Interface, error) {
		return w.api.Client.CoreV1().Pods(w.namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	}, func(e watch.Event) bool { return ok(e.Object.(*corev1.Pod)) })
}

// awaitGone waits until a pod is gone.
func (w *world) awaitGone(name string) {
	w.Helper()
	pods := w.api.Client.CoreV1().Pods(w.namespace)
	await(w.T, fmt.Sprintf("pod %s is gone", name), func(ctx context.Context) (watch.Interface, error) {
		is, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			gone := watch.NewFakeWithChanSize(1, false)
			gone.Delete(is)
			return gone, nil
		}
		if err != nil {
			return nil, err
		}
		one := metav1.SingleObject(metav1.ObjectMeta{Name: name})
		one.ResourceVersion = is.ResourceVersion
		return pods.Watch(ctx, one)
	}, func(e watch.Event) bool { return e.Type == watch.Deleted })
}

func runsNow(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

// awaitNode waits until the node is ready, or is not ready with a reason that contains all these words.
func (w *world) awaitNode(ready bool, words ...string) {
	w.Helper()
	await(w.T, fmt.Sprintf("the node is ready: %t, with %q", ready, words), func(ctx context.Context) (watch.Interface, error) {
		return w.api.Client.CoreV1().Nodes().Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: w.node}))
	}, func(e watch.Event) bool {
		c := readiness(e.Object.(*corev1.Node))
		w.Logf("node: %s %s", c.Status, c.Message)
		if (c.Status == corev1.ConditionTrue) != ready {
			return false
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return false
			}
		}
		return true
	})
}

func readiness(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// await watches until ok reports true, for at most two minutes. A new watch begins with the existing objects.
func await(t *testing.T, what string, open func(context.Context) (watch.Interface, error), ok func(watch.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		events, err := open(ctx)
		if err != nil {
			t.Fatalf("wait until %s: %v", what, err)
		}
		for e := range events.ResultChan() {
			if e.Type != watch.Error && ok(e) {
				events.Stop()
				return
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// keeps watches a pod until the test ends, and checks that it runs and is never restarted.
func (w *world) keeps(name string, uid types.UID) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, err := w.api.Client.CoreV1().Pods(w.namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	if err != nil {
		cancel()
		w.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range events.ResultChan() {
			p, is := e.Object.(*corev1.Pod)
			switch {
			case !is:
			case p.UID != uid || e.Type == watch.Deleted || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].RestartCount != 0:
				w.Errorf("pod %s, which nobody touched, was seen %s: UID %s, want %s; status %+v", name, e.Type, p.UID, uid, p.Status)
			}
		}
	})
	w.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// inItsPlace starts a server on the plugin's socket, and returns a function that ends it.
func (w *world) inItsPlace(mode os.FileMode, hello *rpc.HandshakeResponse) (end func()) {
	w.Helper()
	if err := os.Remove(w.plugin.socket); err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	listener, err := net.Listen("unix", w.plugin.socket)
	if err == nil {
		err = os.Chmod(w.plugin.socket, mode)
	}
	if err != nil {
		w.Fatal(err)
	}
	l := &liar{}
	l.hello.Store(hello)
	s := grpc.NewServer()
	rpc.RegisterProviderServer(s, l)
	go func() { _ = s.Serve(listener) }()
	return s.Stop
}

func (w *world) touch(name string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.backend.dir, name), nil, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) untouch(name string) {
	w.Helper()
	if err := os.Remove(filepath.Join(w.backend.dir, name)); err != nil {
		w.Fatal(err)
	}
}

// A wireFault is a fault of the wire. Its function begins the fault and returns the function that ends it.
type wireFault struct {
	name   string
	reason []string // why the node is not ready meanwhile; nil: it stays ready
	begin  func(*world) (end func())
}

var wireFaults = []wireFault{
	{"killed", []string{"plugin folder at unix://", "is not connected since "}, func(w *world) func() {
		w.plugin.kill()
		return w.plugin.start
	}},
	{"frozen", []string{"is not connected since ", "frozen"}, func(w *world) func() {
		w.plugin.freeze()
		return func() { w.plugin.signal(syscall.SIGCONT) }
	}},
	{"restarted with lost memory", []string{"is not connected since "}, func(w *world) func() {
		w.plugin.kill()
		w.touch(blankFile)
		return func() {
			w.plugin.start()
			w.awaitNode(true)
			w.relistedBlank()
			w.untouch(blankFile)
		}
	}},
	{"an old version", []string{"speaks version 0 of the protocol", "update the older of both"}, func(w *world) func() {
		w.plugin.kill()
		old := hello()
		old.ProtocolVersion = 0
		end := w.inItsPlace(0o600, old)
		return func() { end(); w.plugin.start() }
	}},
	{"a socket with wrong rights", []string{"has the mode 0666", "want 0600"}, func(w *world) func() {
		w.plugin.kill()
		end := w.inItsPlace(0o666, hello())
		return func() { end(); w.plugin.start() }
	}},
	{"a socket of somebody else", []string{"belongs to the user 65534"}, func(w *world) func() {
		if os.Geteuid() != 0 {
			w.Skip("it needs root, to give a socket to somebody else")
		}
		w.plugin.kill()
		end := w.inItsPlace(0o600, hello())
		if err := os.Chown(w.plugin.socket, 65534, -1); err != nil {
			w.Fatal(err)
		}
		return func() { end(); w.plugin.start() }
	}},
	{"a slow answer", nil, func(w *world) func() {
		w.touch(slowFile)
		return func() {
			began := time.Now()
			eventually(w.T, "the plugin is slow for longer than one that is frozen may be", func() bool {
				if err := ping(w.T, w.wired); err != nil {
					w.Fatalf("a slow answer is no frozen plugin: %v", err)
				}
				return time.Since(began) > w.wired.patience+time.Second
			})
			w.untouch(slowFile)
		}
	}},
	{"a message over the limit", nil, func(w *world) func() {
		w.create("large", func(p *corev1.Pod) { p.Annotations = map[string]string{"large": strings.Repeat("x", folderLimit)} })
		w.awaitPod("large", "says why it does not start", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodPending && strings.Contains(p.Status.Message, "raise MaxMessageBytes")
		})
		return func() {
			w.remove("large")
			w.awaitGone("large")
		}
	}},
}

// relistedBlank waits until the node has listed all pods of a plugin that knows none, after an earlier list for
// the reports meanwhile.
func (w *world) relistedBlank() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		data, err := os.ReadFile(filepath.Join(w.backend.dir, "journal"))
		if err != nil {
			w.Fatal(err)
		}
		if strings.Count(string(data), "blank list") >= 2 {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			w.Fatal("the node does not relist")
		}
	}
}

// TestWireFaults checks each fault between a node and its plugin: no pod is lost or doubled, and while the
// plugin is away the node has the reason.
func TestWireFaults(t *testing.T) {
	var all sync.WaitGroup // and not t.Parallel: they wait most of the time
	defer all.Wait()
	run := func(f wireFault) {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t)
			stays, leaves := w.create("stays"), w.create("leaves")
			for _, name := range []string{"stays", "leaves"} {
				w.awaitPod(name, "runs", runsNow)
			}
			w.keeps("stays", stays)
			end := f.begin(w)
			if f.reason != nil {
				w.awaitNode(false, f.reason...)
			}
			comes := w.create("comes")
			w.remove("leaves")
			end()
			w.awaitNode(true)
			w.awaitPod("comes", "runs", runsNow)
			w.awaitGone("leaves")
			started, stopped, err := w.backend.journal()
			if err != nil {
				t.Fatal(err)
			}
			if len(started) != 3 || started[stays] != 1 || started[leaves] != 1 || started[comes] != 1 {
				t.Errorf("started were %v, want each of three pods once", started)
			}
			if len(stopped) != 1 || stopped[leaves] != 1 {
				t.Errorf("stopped were %v, want pod leaves (%s) once", stopped, leaves)
			}
		})
	}
	for _, f := range wireFaults {
		all.Go(func() { run(f) })
	}
}
