// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

func TestDefaults(t *testing.T) {
	outsideCluster(t)
	t.Setenv("KUBECONFIG", writeKubeconfig(t, "https://env.example"))
	var seen NodeConfig
	var given ProviderConfig
	m := newMemory()
	n, err := NewNode("n1", func(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
		given = cfg
		return m, nil, nil
	}, func(cfg *NodeConfig) error {
		seen = *cfg
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen.Client == nil {
		t.Error("options find no client although $KUBECONFIG has one")
	}
	if seen.NumWorkers != runtime.NumCPU() || seen.InformerResyncPeriod != time.Minute || seen.HTTPListenAddr != ":10250" {
		t.Errorf("got %d workers, resync %s, address %s", seen.NumWorkers, seen.InformerResyncPeriod, seen.HTTPListenAddr)
	}
	if got := n.clients.main.CoreV1().RESTClient().Get().URL().Host; got != "env.example" {
		t.Errorf("client goes to %s, want env.example", got)
	}

	spec := seen.NodeSpec
	for label, want := range map[string]string{
		"type":                   "virtual-kubelet",
		"kubernetes.io/role":     "agent",
		"kubernetes.io/hostname": "n1",
		"kubernetes.io/os":       runtime.GOOS,
		"kubernetes.io/arch":     runtime.GOARCH,
	} {
		if got := spec.Labels[label]; got != want {
			t.Errorf("label %s: got %q, want %q", label, got, want)
		}
	}
	if spec.Name != "n1" || spec.Status.Phase != corev1.NodePending || len(spec.Status.Conditions) != 5 {
		t.Errorf("node: got %q, phase %s, %d conditions", spec.Name, spec.Status.Phase, len(spec.Status.Conditions))
	}
	if got := spec.Status.NodeInfo.KubeletVersion; !strings.HasSuffix(got, "-vk") {
		t.Errorf("kubelet version: got %q, want …-vk", got)
	}
	if given.Node != &n.cfg.NodeSpec || given.Pods == nil || given.ConfigMaps == nil || given.Secrets == nil || given.Services == nil {
		t.Errorf("provider configuration: got %+v", given)
	}
}

func TestKubeconfigPathOfAnOption(t *testing.T) {
	outsideCluster(t)
	t.Setenv("KUBECONFIG", writeKubeconfig(t, "https://env.example"))
	path := writeKubeconfig(t, "https://option.example")
	n, err := NewNode("n1", newMemory().asProvider, func(cfg *NodeConfig) error {
		cfg.KubeconfigPath, cfg.KubeAPIQPS, cfg.KubeAPIBurst = path, 7, 9
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rest := n.clients.main.CoreV1().RESTClient()
	if got := rest.Get().URL().Host; got != "option.example" || rest.GetRateLimiter().QPS() != 7 {
		t.Errorf("client: got host %s with QPS %v, want option.example with 7", got, rest.GetRateLimiter().QPS())
	}
	if n.cfg.Client != n.clients.main {
		t.Error("the configuration keeps another client than the node uses")
	}
}

func TestOptionsInOrder(t *testing.T) {
	outsideCluster(t)
	var order []string
	note := func(what string) PodControllerConfigOpt {
		return func(cfg *node.PodControllerConfig) error {
			if cfg.Provider == nil || cfg.PodInformer == nil {
				t.Errorf("%s: the configuration is not complete yet", what)
			}
			order = append(order, what)
			return nil
		}
	}
	_, err := NewNode("n1", newMemory().asProvider,
		WithPodControllerConfigOverrides(note("lost")),
		WithNodeConfig(NodeConfig{HTTPListenAddr: "127.0.0.1:0"}), // replaces all earlier settings
		WithClient(fake.NewClientset()),
		WithPodControllerConfigOverrides(note("a"), note("b")),
		func(cfg *NodeConfig) error {
			if cfg.HTTPListenAddr != "127.0.0.1:0" || cfg.NumWorkers != 0 || cfg.NodeSpec.Name != "" {
				t.Errorf("WithNodeConfig left something of before: %+v", cfg)
			}
			return nil
		},
		WithPodControllerConfigOverrides(note("c")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abc" {
		t.Errorf("pod controller options: got %q, want abc", got)
	}
}

func TestNewNodeErrors(t *testing.T) {
	outsideCluster(t)
	boom := errors.New("boom")
	client := WithClient(fake.NewClientset())
	set := func(f func(*NodeConfig)) NodeOpt {
		return func(cfg *NodeConfig) error { f(cfg); return nil }
	}
	fails := func(*NodeConfig) error { return boom }
	unreached := func(*NodeConfig) error { t.Error("an option ran after another had failed"); return nil }
	var typedNil *kubernetes.Clientset
	good := newMemory().asProvider

	for _, tc := range []struct {
		name string
		node string
		make NewProviderFunc
		opts []NodeOpt
		want string
	}{
		{"no name", "", good, []NodeOpt{client}, "name is empty"},
		{"no provider function", "n1", nil, []NodeOpt{client}, "provider"},
		{"no client", "n1", good, nil, "make a client of the API server"},
		{"nil client", "n1", good, []NodeOpt{WithClient(nil)}, "no client provided"},
		{"typed nil client", "n1", good, []NodeOpt{WithClient(typedNil)}, "nil *kubernetes.Clientset"},
		{"typed nil client set by hand", "n1", good, []NodeOpt{set(func(c *NodeConfig) { c.Client = typedNil })}, "nil *kubernetes.Clientset"},
		{"typed nil heartbeats", "n1", good, []NodeOpt{client, set(func(c *NodeConfig) { c.HeartbeatClient = typedNil })}, "heartbeats"},
		{"option", "n1", good, []NodeOpt{client, fails, unreached}, "boom"},
		{"pod controller option", "n1", good, []NodeOpt{client, WithPodControllerConfigOverrides(func(*node.PodControllerConfig) error { return boom })}, "boom"},
		{"address", "n1", good, []NodeOpt{client, set(func(c *NodeConfig) { c.HTTPListenAddr = "10250" })}, "HTTPListenAddr"},
		{"other node name", "n1", good, []NodeOpt{client, set(func(c *NodeConfig) { c.NodeSpec.Name = "n2" })}, "n2"},
		{"no certificate", "n1", good, []NodeOpt{client, WithTLSConfig(), set(func(c *NodeConfig) { c.Handler = hello })}, "certificate"},
		{"provider", "n1", func(ProviderConfig) (Provider, node.NodeProvider, error) { return nil, nil, boom }, []NodeOpt{client}, "boom"},
		{"nil provider", "n1", func(ProviderConfig) (Provider, node.NodeProvider, error) { return nil, nil, nil }, []NodeOpt{client}, "nil"},
		{"typed nil provider", "n1", func(ProviderConfig) (Provider, node.NodeProvider, error) { return (*memory)(nil), nil, nil }, []NodeOpt{client}, "nil *nodeutil.memory"},
		{"typed nil node provider", "n1", func(ProviderConfig) (Provider, node.NodeProvider, error) {
			return newMemory(), (*node.NaiveNodeProvider)(nil), nil
		}, []NodeOpt{client}, "nil *node.NaiveNodeProvider"},
	} {
		n, err := NewNode(tc.node, tc.make, tc.opts...)
		if err == nil || n != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want an error with %q", tc.name, err, tc.want)
		}
	}
}

func TestNewNodeStartsNothing(t *testing.T) {
	outsideCluster(t)
	before := goleak.IgnoreCurrent()
	client := fake.NewClientset()
	cert, key := testpki.New(t).Issue(t, "n1")
	_, err := NewNode("n1", newMemory().asProvider, WithClient(client), WithTLSConfig(WithKeyPairFromPath(cert, key)),
		func(cfg *NodeConfig) error { cfg.Handler = hello; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if got := len(client.Actions()); got != 0 {
		t.Errorf("NewNode sent %d requests", got)
	}
}

func TestProviderShapesTheNode(t *testing.T) {
	outsideCluster(t)
	n, err := NewNode("n1", func(cfg ProviderConfig) (Provider, node.NodeProvider, error) {
		cfg.Node.Status = corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "windows", KubeletVersion: "v1.2.3"}}
		return newMemory(), node.NaiveNodeProvider{}, nil
	}, WithClient(fake.NewClientset()), func(cfg *NodeConfig) error {
		cfg.EventRecorder = record.NewFakeRecorder(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := n.cfg.NodeSpec
	info := spec.Status.NodeInfo
	if info.OperatingSystem != "windows" || spec.Labels["kubernetes.io/os"] != "windows" {
		t.Errorf("operating system: got %q, label %q; want windows", info.OperatingSystem, spec.Labels["kubernetes.io/os"])
	}
	if info.KubeletVersion != "v1.2.3" || info.Architecture != runtime.GOARCH {
		t.Errorf("node info: got %+v", info)
	}
	if n.events != nil || n.naive != nil {
		t.Error("the program's event recorder or node provider is not used")
	}
}

// TestPort: the node has the port of the server as soon as this port is known.
func TestPort(t *testing.T) {
	outsideCluster(t)
	cert, key := testpki.New(t).Issue(t, "n1")
	for _, tc := range []struct {
		name    string
		handler http.Handler
		set     int32
		want    int32
	}{
		{"server", hello, 0, 10250},
		{"no server", nil, 0, 0},
		{"set by the program", hello, 443, 443},
	} {
		n, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()),
			WithTLSConfig(WithKeyPairFromPath(cert, key)), func(cfg *NodeConfig) error {
				cfg.Handler = tc.handler
				cfg.NodeSpec.Status.DaemonEndpoints.KubeletEndpoint.Port = tc.set
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.cfg.NodeSpec.Status.DaemonEndpoints.KubeletEndpoint.Port; got != tc.want {
			t.Errorf("%s: port is %d, want %d", tc.name, got, tc.want)
		}
	}
	if cfg := hardened(&tls.Config{}); cfg.MinVersion != tls.VersionTLS12 || len(cfg.NextProtos) != 1 {
		t.Errorf("a plain TLS configuration becomes %+v", cfg)
	}
}
