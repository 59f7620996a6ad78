// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
	"github.com/virtual-kubelet/virtual-kubelet/test/internal/testnode"
)

const (
	fleetNodes = 20
	fleetPods  = 5 // of each
)

// fleet is many nodes, each with a backend of its own.
type fleet struct {
	*world
	names    []string
	mu       sync.Mutex
	backends map[string]*memory.Backend // guarded by mu; keyed by node
}

// ofFleet is the provider of one node of the fleet.
type ofFleet struct {
	notifying
	node string
}

// GetContainerLogs returns a log that names the node.
func (p ofFleet) GetContainerLogs(_ context.Context, namespace, pod, _ string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(fmt.Sprintf("%s/%s on %s", namespace, pod, p.node))), nil
}

// unwell is a node provider whose backend is not reachable.
type unwell struct{ node.NaiveNodeProvider }

func (unwell) Ping(context.Context) error { return errors.New("the backend of this node is away") }

func newFleet(t *testing.T) *fleet {
	f := &fleet{world: newWorld(t), backends: map[string]*memory.Backend{}}
	for i := range fleetNodes {
		f.names = append(f.names, fmt.Sprintf("%s-%02d", f.nodeName, i))
	}
	t.Cleanup(func() {
		for _, name := range f.names {
			_ = f.client().CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) // it may be gone
		}
		for name, backend := range f.backends {
			for _, fault := range backend.Faults() {
				t.Errorf("at the backend of node %s: %s", name, fault)
			}
		}
	})
	return f
}

// make is the NewProviderFunc. The backend of the last node is never healthy.
func (f *fleet) make(cfg nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	backend := memory.New()
	f.backends[cfg.Node.Name] = backend
	var health node.NodeProvider
	if cfg.Node.Name == f.names[fleetNodes-1] {
		health = unwell{}
	}
	return ofFleet{notifying{polled{Backend: backend, changed: f.changed}}, cfg.Node.Name}, health, nil
}

// run runs the nodes and returns the function that stops them.
func (f *fleet) run(credentials testapi.NodeCredentials) (stop func()) {
	f.Helper()
	config := rest.CopyConfig(f.config)
	config.QPS = -1 // the API server decides
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.Fatal(err)
	}
	routes := &oneHandler{}
	nodes, err := nodeutil.NewFleet(f.names, f.make, nodeutil.WithClient(client), testnode.Roomy,
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), clientCA(f.T, credentials.CAFile)),
		nodeutil.AttachProviderRoutes(routes),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr = routes, "127.0.0.1:0"
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			return nil
		})
	if err != nil {
		f.Fatalf("make %d nodes: %v", fleetNodes, err)
	}
	stop = testnode.Run(f.T, "the fleet", nodes, testnode.Options{})
	if err := nodes.WaitReady(f.Context(), patience); err != nil {
		f.Fatalf("start %d nodes: %v", fleetNodes, err)
	}
	return stop
}

// TestFleet runs many nodes in one process, through a life with pods. It is not parallel: other
// tests' goroutines would be counted.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	credentials := f.api.NodeCredentials(t, f.names[0])
	f.run(credentials)() // creates connections and caches that the process keeps
	before := goleak.IgnoreCurrent()
	stop := f.run(credentials)

	var names []string
	on := map[string]string{}
	for _, node := range f.names {
		for i := range fleetPods {
			name := fmt.Sprintf("pod-%s-%d", node[len(node)-2:], i)
			names, on[name] = append(names, name), node
		}
	}
	f.forEach(names, func(name string) error {
		pod := f.pod(name)
		pod.Spec.NodeName, pod.Spec.NodeSelector = on[name], nil
		_, err := f.pods().Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	})
	f.awaitRunning(fleetNodes * fleetPods)
	for _, node := range f.names {
		if n := f.backends[node].Len(); n != fleetPods {
			t.Errorf("node %s has %d pods at its backend, want its own %d", node, n, fleetPods)
		}
	}

	for _, name := range []string{names[0], names[7*fleetPods]} {
		got, err := f.pods().GetLogs(name, &corev1.PodLogOptions{}).Do(t.Context()).Raw()
		if want := fmt.Sprintf("%s on %s", f.key(name), on[name]); err != nil || string(got) != want {
			t.Errorf("logs of pod %s: got %q (%v), want %q", name, got, err, want)
		}
	}

	for i, node := range f.names {
		f.nodeName = node
		if i < fleetNodes-1 {
			f.awaitNode("is ready", nodeReady)
			continue
		}
		f.awaitNode("is not ready", func(n *corev1.Node) bool {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady {
					return c.Status == corev1.ConditionFalse && c.Reason == "ProviderPingFailed"
				}
			}
			return false
		})
	}

	f.removeMany(names[:fleetPods+1])
	f.awaitRunning(fleetNodes*fleetPods - fleetPods - 1)
	stop()
	goleak.VerifyNone(t, before)
}

// clientCA returns an option that trusts the CA in file, so that the API server can authenticate by its client
// certificate.
func clientCA(t *testing.T, file string) func(*tls.Config) error {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return nodeutil.WithCACert(pem)
}

// oneHandler serves the routes of the provider.
type oneHandler struct{ http.Handler }

// Handle stores the routes.
func (h *oneHandler) Handle(_ string, routes http.Handler) { h.Handler = routes }
