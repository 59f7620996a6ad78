// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

// world is the environment of one test. The backend outlives the node, which a test may start and stop more than
// once.
type world struct {
	*testing.T
	api       *testapi.API
	namespace string
	nodeName  string
	backend   *memory.Backend
	changed   *signal // the backend has changed
	requests  *requests

	// The settings of start. A test sets them before start.
	polled     bool                     // the provider has no PodNotifier
	provider   nodeutil.NewProviderFunc // default newProvider
	config     *rest.Config             // of the node
	bootstraps bool                     // the node makes its clients itself
	opts       []nodeutil.NodeOpt
	within     func(context.Context) context.Context // makes the context of Run; nil does not change it
	level      slog.Level                            // of the node's log
	said       *testlog.Buffer                       // the node's log, if all of it is wanted
}

// newWorld returns a world in the shared cluster.
func newWorld(t *testing.T) *world { return newWorldIn(t, testapi.Start(t)) }

func newWorldIn(t *testing.T, api *testapi.API) *world {
	t.Helper()
	w := &world{
		T: t, api: api, namespace: api.Namespace(t), nodeName: api.NodeName(t),
		backend: memory.New(), changed: &signal{}, requests: &requests{},
		config: rest.CopyConfig(api.Config),
	}
	w.provider = w.newProvider
	t.Cleanup(func() {
		for _, fault := range w.backend.Faults() {
			t.Errorf("at the backend: %s", fault)
		}
	})
	return w
}

// process is one life of the node's daemon.
type process struct {
	*nodeutil.Node
	stop func() // ends Run and waits for it
}

// start runs the node and waits until it is ready. It ends with the test.
func (w *world) start() *process {
	w.Helper()
	p := w.launch()
	if err := p.WaitReady(w.Context(), patience); err != nil {
		w.Fatalf("start node %s: %v", w.nodeName, err)
	}
	return p
}

// launch runs the node.
func (w *world) launch() *process {
	w.Helper()
	config := rest.CopyConfig(w.config)
	w.requests.watch(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.Fatalf("make the node's client: %v", err)
	}
	opts := append([]nodeutil.NodeOpt{nodeutil.WithClient(client), testnode.Roomy}, w.opts...)
	if w.bootstraps {
		opts = opts[1:]
	}
	n, err := nodeutil.NewNode(w.nodeName, w.provider, opts...)
	if err != nil {
		w.Fatalf("make node %s: %v", w.nodeName, err)
	}
	stop := testnode.Run(w.T, "node "+w.nodeName, n, testnode.Options{Level: w.level, Log: w.said, Within: w.within})
	return &process{Node: n, stop: stop}
}

func (w *world) newProvider(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
	p := polled{Backend: w.backend, changed: w.changed}
	if w.polled {
		return p, nil, nil
	}
	return notifying{p}, nil, nil
}

// awaitBackend waits until done returns true. It calls done at each change of the backend.
func (w *world) awaitBackend(what string, done func() bool) {
	w.Helper()
	w.changed.wait(w.T, fmt.Sprintf("%s (it has %d pods)", what, w.backend.Len()), done)
}

// awaitEmptyBackend waits until nothing is left at the backend.
func (w *world) awaitEmptyBackend() {
	w.Helper()
	w.awaitBackend("the backend has no pods", func() bool { return w.backend.Len() == 0 })
}

// createdOnce checks that the backend got exactly one request to create each pod.
func (w *world) createdOnce(names []string) {
	w.Helper()
	for _, name := range names {
		if n := w.backend.Count("create " + w.key(name)); n != 1 {
			w.Errorf("CreatePod was called %d times for pod %s, want once", n, name)
		}
	}
}

// key returns the key of a pod in the test's namespace.
func (w *world) key(name string) string { return w.namespace + "/" + name }
