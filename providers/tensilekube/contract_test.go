// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on a lower cluster with a real API server and scheduler, whose node runs containers
// that are goroutines. Each check is an upper cluster of its own.
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
		Subject:  providertest.Subject{Provider: "tensilekube", Backend: "a lower cluster with a real API server, whose containers are goroutines"},
		Unproven: unproven(), Except: goroutines(),
	})
}

// backend is the lower cluster for the upper cluster of one check.
func (w *worker) backend(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
	l, config := &line{}, w.config(env.Namespace)
	access := l.through(w.api.Config)
	b := &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return newProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config, access)
		},
		Close: func() error {
			home := remotecluster.Home{Cluster: env.Namespace, Node: env.Node.Name}
			err := w.api.Client.CoreV1().Namespaces().Delete(context.Background(), home.NamespaceName(env.Namespace), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		},
		Outage: l.outage, Throttle: l.throttle, LoseAnswer: l.loseNext,
	}
	if w.cloud != nil {
		b.Instances, b.Kill, b.Lose = w.instances, w.kill, w.lose
	}
	return b, nil
}

// goroutines are the checks of what a container sees of its machine.
func goroutines() map[string]string {
	except := map[string]string{}
	for _, name := range []string{
		"probes/network", "settings/capabilities", "settings/dns", "settings/fs-group", "settings/host-aliases", "settings/hostname",
		"settings/limits", "settings/no-new-privileges", "settings/read-only-root", "settings/restart-rules", "settings/run-as-user",
		"settings/seccomp", "settings/stop-signal", "settings/sysctls",
	} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	return except
}

// unproven are features whose fields are passed on as they are. What they do is the remote node's, and the node of this test has
// them not.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{
		capability.TokenVolumes: "no check of the contract has tokens; TestTokensOfHome reads one in a container",
	}
	for _, f := range []capability.Feature{
		capability.ContainerRestartRules, capability.StopSignal, capability.NetworkProbes, capability.ContainerLimits, capability.PodResources,
		capability.ImageVolumes, capability.MountPropagation, capability.MountOptions, capability.EnvFiles, capability.HostAliases, capability.DNS,
		capability.Hostname, capability.SharedProcesses, capability.UserNamespaces, capability.RunAsUser, capability.FSGroup, capability.Capabilities,
		capability.NoNewPrivileges, capability.ReadOnlyRoot, capability.Seccomp, capability.AppArmor, capability.SELinux, capability.Sysctls,
		capability.WindowsOptions,
	} {
		all[f] = "the remote pod has the fields as they are, by the tests of the translation; the containers of this test are goroutines, without what they act on"
	}
	return all
}
