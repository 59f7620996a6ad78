// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// patience is the longest time that a test waits for a change.
const patience = 2 * time.Minute

// TestMain silences the log lines of the Kubernetes libraries about outages that the tests make.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// until polls ok, because nothing signals the change.
func until(t *testing.T, what string, ok func() (bool, string)) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(patience)
	for {
		done, state := ok()
		if done {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("waited %s for: %s: %s", patience, what, state)
		}
	}
}

// runNode runs a node until the test ends.
func runNode(t *testing.T, api *testapi.API, name string, provider nodeutil.NewProviderFunc, o ...nodeutil.NodeOpt) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	n, err := nodeutil.NewNode(name, provider, append(o, nodeutil.WithClient(api.Client))...)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = n.Run(ctx) }() // Err has the error
	t.Cleanup(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("node %s ended with %v", name, err)
		}
	})
	if err := n.WaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
}

// everything accepts pods with fields that have no meaning for goroutines.
type everything struct{ *inprocess.Provider }

// Capabilities implements capability.Declarer.
func (everything) Capabilities() capability.Declaration { return capability.All() }

// startTarget starts a cluster with a scheduler, and with a node for each entry of cpus, whose containers are
// goroutines.
func startTarget(t *testing.T, cpus ...string) *testapi.API {
	t.Helper()
	api := testapi.New(t, testapi.Options{})
	for i, cpu := range cpus {
		cloud := inprocess.New(context.WithoutCancel(t.Context()))
		runNode(t, api, fmt.Sprintf("worker-%d", i), func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
			return everything{inprocess.Open(cloud, inprocess.Objects{ConfigMaps: c.ConfigMaps, Secrets: c.Secrets})}, nil, nil
		}, func(cfg *nodeutil.NodeConfig) error {
			room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("100")}
			cfg.NodeSpec.Status.Capacity, cfg.NodeSpec.Status.Allocatable = room, room
			return nil
		})
	}
	return api
}

// source is a cluster with a node for each target.
type source struct {
	*testing.T
	api     *testapi.API
	targets map[string]*testapi.API // by names of nodes
	config  Config
	access  *rest.Config // of agents
	ns      string
}

// startSource starts a cluster with a node for each target, and writes the configuration of an agent.
func startSource(t *testing.T, targets map[string]*testapi.API) *source {
	t.Helper()
	s := &source{T: t, api: testapi.New(t, testapi.Options{}), targets: targets}
	dir, text := t.TempDir(), fmt.Sprintf("apiVersion: %s\nkind: %s\ntargets:\n", APIVersion, Kind)
	for name, target := range targets {
		path := filepath.Join(dir, name+".yaml")
		write(t, path, fmt.Sprintf("apiVersion: %s\nkind: %s\nkubeconfig: %s\nclusterName: source\n", admiralty.APIVersion, admiralty.Kind, target.KubeconfigPath))
		text += fmt.Sprintf("- {node: %s, providerConfig: %s}\n", name, path)
		runNode(t, s.api, name, func(c nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
			p, err := admiralty.Provider().New(t.Context(), cli.ProviderInput{ProviderConfig: c, NodeName: name, ConfigPath: path})
			if err != nil {
				return nil, nil, err
			}
			p.(cli.NodeConfigurer).ConfigureNode(t.Context(), c.Node)
			return p, p.(node.NodeProvider), nil
		}, func(cfg *nodeutil.NodeConfig) error {
			cfg.NodeSpec.Spec.Taints = []corev1.Taint{{Key: admiralty.LabelProvider, Value: admiralty.ProviderName, Effect: corev1.TaintEffectNoSchedule}}
			return nil
		})
	}
	write(t, filepath.Join(dir, "agent.yaml"), text)
	var err error
	if s.config, err = LoadConfig(filepath.Join(dir, "agent.yaml")); err != nil {
		t.Fatal(err)
	}
	s.ns = s.api.Namespace(t)
	s.asTheReadmeSays()
	for name := range targets {
		until(t, "node "+name+" has room", func() (bool, string) {
			n, err := s.api.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && n.Status.Allocatable.Cpu().Value() > 0, fmt.Sprint(err)
		})
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// agent runs an agent until stop is called, or the test ends.
func (s *source) agent(change func(*Options)) (stop func()) {
	s.Helper()
	o := Options{Config: s.config, Access: s.access, Namespace: metav1.NamespaceSystem}
	o.terms.duration, o.terms.deadline, o.terms.retry = 3*time.Second, 2*time.Second, 200*time.Millisecond
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("the agent ended with %v", err)
		}
	})
	s.Cleanup(stop)
	return stop
}
