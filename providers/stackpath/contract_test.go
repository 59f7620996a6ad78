// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the provider contract on the emulator, whose containers are goroutines.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: backend,
		Container: func(pod *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			pod.Spec.TerminationGracePeriodSeconds = new(int64(3)) // the grace period of a workload is fixed at its creation
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 20 * time.Millisecond, Tick: time.Second, Parallel: 12,
		Subject:  providertest.Subject{Provider: "stackpath", Backend: "an emulator of StackPath, whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(), OwnStartErrors: true,
	})
}

// exceptions returns the excluded checks: they depend on the container's machine, or on features that StackPath lacks.
func exceptions() map[string]string {
	except := map[string]string{}
	for _, name := range []string{
		"probes/network", "settings/dns", "settings/host-aliases", "settings/limits", "settings/no-new-privileges", "settings/read-only-root",
		"settings/run-as-user",
	} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	for _, name := range []string{"attach/output", "port-forward/both-ways", "port-forward/refused"} {
		except[name] = "StackPath has no such request, and the provider says so"
	}
	for _, name := range []string{"deletion/at-once", "deletion/shorter"} {
		except[name] = "a workload is given the time that it was created with: its delete has none"
	}
	for _, name := range []string{"starts/backs-off", "restarts/always"} {
		except[name] = "StackPath tells one run of a container: lastState is what the node has seen, and the emulator starts a container again at once"
	}
	except["creation/init-order"] = "a workload has one init container, and the provider says so"
	except["stats/summary"], except["stats/ended"] = "the metrics of workloads are not read", "the metrics of workloads are not read"
	return except
}

// unproven returns features whose fields are passed to StackPath unchanged. Their effect depends on StackPath.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{
		capability.InitContainers:      "the checks of the contract have pods that end, or several of them; TestInitContainerRunsFirst has one",
		capability.TerminationMessages: "the check of the contract has a pod that ends; TestTerminationMessagesAreTold reads one",
	}
	for _, f := range []capability.Feature{
		capability.NetworkProbes, capability.ContainerLimits, capability.HostAliases, capability.DNS, capability.SharedProcesses, capability.RunAsUser,
		capability.ReadOnlyRoot, capability.NoNewPrivileges,
	} {
		all[f] = "StackPath gets the fields as they are, by the tests of the mapping; the containers of this test are goroutines, without what they act on"
	}
	return all
}
