// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on a target cluster with a real API server and scheduler. A
// controller makes the pods of PodChaperons, and a node runs goroutines as containers. Each check has a source
// cluster of its own.
func TestContract(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	startChaperons(t, w.API)
	providertest.Run(t, providertest.Harness{
		Backend: w.backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8,
		Subject:  providertest.Subject{Provider: "admiralty", Backend: "PodChaperons in a target cluster with a real API server, whose containers are goroutines"},
		Unproven: remotetest.Unproven("the tests of tensilekube read one in a container, by the same code"), Except: remotetest.Goroutines(),
	})
}

// backend returns the target cluster as the backend for one check's source cluster.
func (w *worker) backend(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
	l, config := &remotetest.Line{Creates: "podchaperons"}, w.config(env.Namespace)
	access := l.Through(w.API.Config)
	namespace := remotecluster.Home{Cluster: env.Namespace, Node: env.Node.Name}.NamespaceName(env.Namespace)
	b := &providertest.Backend{
		Left: w.Left(namespace, "/apis/multicluster.admiralty.io/v1alpha1/namespaces/"+namespace+"/podchaperons"), Kept: remotetest.Kept,
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, access)
		},
		Close: func() error {
			return w.API.Clear(context.Background(), namespace)
		},
		Outage: l.Outage, Throttle: l.Throttle, LoseAnswer: l.LoseNext,
	}
	if w.Cloud != nil {
		b.Instances, b.Kill, b.Lose = w.Instances, w.Kill, w.Lose
	}
	return b, nil
}
