// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on a remote cluster with a real API server and scheduler. Its node
// runs goroutines as containers, and a controller of the test makes the pods of ShadowPods. Each check has a
// home cluster of its own.
func TestContract(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	providertest.Run(t, providertest.Harness{
		Backend: w.backend,
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8,
		Subject: providertest.Subject{Provider: "liqo",
			Backend: "a remote cluster with a real API server, a controller of the test for ShadowPods, and containers that are goroutines"},
		Unproven: remotetest.Unproven("TestTokensOfHome reads one in a container"), Except: remotetest.Goroutines(),
	})
}

// backend returns the remote cluster as the backend for one check's home cluster, which has one namespace there.
func (w *worker) backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	ns, err := w.API.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "offloaded-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	l, config := &remotetest.Line{Creates: "shadowpods"}, w.placed(env.Namespace, map[string]string{env.Namespace: ns.Name})
	access := l.Through(w.API.Config)
	b := &providertest.Backend{
		Left: w.Left(ns.Name, "/apis/"+group+"/"+version+"/namespaces/"+ns.Name+"/shadowpods"), Kept: remotetest.Kept,
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, access, nil)
		},
		Close: func() error {
			return w.API.Clear(context.Background(), ns.Name)
		},
		Instances: w.Instances, Kill: w.Kill, Lose: w.Lose,
		Outage: l.Outage, Throttle: l.Throttle, LoseAnswer: l.LoseNext,
	}
	return b, nil
}
