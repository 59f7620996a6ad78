// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on an emulator of ACI whose containers are goroutines.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: backend,
		Container: func(_ *corev1.Pod, k *corev1.Container, p program.Program) error {
			k.Image, k.Command = "program", append([]string{"program"}, p.Args()...)
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 20 * time.Millisecond, Tick: time.Second, Parallel: 16,
		Subject:  providertest.Subject{Provider: "aci", Backend: "an emulator of ACI whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(), OwnStartErrors: true,
	})
}

// backend returns ACI as the backend of one check.
func backend(ctx context.Context, env providertest.Env) (*providertest.Backend, error) {
	dir, err := os.MkdirTemp("", "aci-contract-")
	if err != nil {
		return nil, err
	}
	a, err := startAzure(ctx, dir)
	if err != nil {
		return nil, err
	}
	a.front.Forget()
	owner := identity.Owner{Cluster: env.Namespace, Node: env.Node.Name}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			return open(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, a.config(env.Namespace),
				pace{busy: 30 * time.Millisecond, rest: 60 * time.Millisecond, follow: 30 * time.Millisecond, eager: true})
		},
		Close: func() error { return os.RemoveAll(dir) },
		Left:  func() (map[string][]string, error) { return a.Left(), nil },
		Outage: a.answers(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error": {"code": "ServiceUnavailable", "message": "down"}}`, http.StatusServiceUnavailable)
		}),
		Throttle: a.answers(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error": {"code": "TooManyRequests", "message": "slow down"}}`, http.StatusTooManyRequests)
		}),
		Stale:      func(on bool) { _ = a.Stale(ctx, on) }, // a list of goroutines never fails
		LoseAnswer: func() { a.front.Break(emulator.Fault{Operations: []string{"Create"}, Times: 1, Lose: true}) },
		Instances:  func(pod *corev1.Pod) (int, error) { return a.cloud.Instances(a.id(owner, pod)), nil },
		Kill:       func(pod *corev1.Pod, container string) error { return a.cloud.Kill(a.id(owner, pod), container) },
		Lose: func(pod *corev1.Pod) error {
			id := a.id(owner, pod)
			a.Server.Lose(owner.Name(identity.Of(pod)))
			return a.cloud.Lose(id)
		},
	}, nil
}

// exceptions returns the checks of features that ACI lacks, and of features that only a container on a real
// machine has.
func exceptions() map[string]string {
	except := map[string]string{}
	for reason, names := range map[string][]string{
		"the containers of this test are goroutines, which have nothing of it": {"settings/capabilities", "settings/dns", "settings/limits", "settings/no-new-privileges", "settings/run-as-user"},
		"ACI has one grace period for all groups, and tells nothing of a group that was deleted": {
			"deletion/grace", "deletion/grace-ends", "deletion/at-once", "deletion/shorter", "deletion/told", "deletion/exit-code",
		},
		"ACI takes no variable without a value, so the provider leaves it out: TestPublishedC16VariablesWithoutValues": {"environment/empty"},
		"a volume of ACI has no modes and no directories, and the provider says so":                                    {"files/mode", "files/items"},
		"a session of ACI has the first size of its terminal and no other: TestTerminal":                               {"exec/terminal"},
		"a session of ACI has one output":                                                                                                          {"exec/output"},
		"ACI keeps no log of the run before, and the provider says so":                                                                             {"logs/previous"},
		"ACI has no such request that tells the container's input from another, and the provider says so":                                          {"attach/output"},
		"the containers of this test are goroutines, which have no address: TestPortForward":                                                       {"port-forward/both-ways", "port-forward/refused", "errors/no-port-forward"},
		"the containers of this test are goroutines, which have no address: TestAProbeIsDoneOnce says which of ACI and this node does which probe": {"probes/network"},
	} {
		for _, name := range names {
			except[name] = reason
		}
	}
	return except
}

// unproven returns the features whose fields are only passed on to ACI.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{
		capability.TokenVolumes:     "no check of the contract has tokens; the tests of the mapping do",
		capability.OtherVolumes:     "azureFile alone, by the tests of the mapping",
		capability.PersistentVolume: "shares of Azure Files, by the tests of the mapping; no share is here",
		capability.CSIVolumes:       "Azure Files alone, by the tests of the mapping",
		capability.NetworkProbes:    "ACI does those by HTTP, and this node the others; the containers of this test are goroutines, which have no address",
	}
	for _, f := range []capability.Feature{
		capability.ContainerLimits, capability.DNS, capability.RunAsUser, capability.Capabilities, capability.NoNewPrivileges,
	} {
		all[f] = "ACI gets the fields, by the tests of the mapping; the containers of this test are goroutines, without what they act on"
	}
	return all
}
