// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers on the emulator, whose containers are goroutines.
func TestContract(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Backend: backend,
		Container: func(pod *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			pod.Spec.TerminationGracePeriodSeconds = new(int64(3)) // ECI gives a pod the grace period of its creation
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 20 * time.Millisecond, Tick: time.Second, Parallel: 12,
		Subject:  providertest.Subject{Provider: "eci", Backend: "an emulator of ECI, whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(), OwnStartErrors: true,
	})
}

func uid(id string) types.UID { return types.UID(id) }

// instances returns the number of running groups of a pod.
func (e *emulated) instances(pod *corev1.Pod) (n int) {
	for _, id := range e.Groups("vk-uid", string(pod.UID)) {
		n += e.cloud.Instances(uid(e.Run(id)))
	}
	return n
}

// exceptions returns the checks of features that only a container on a real machine has, and of features that
// ECI lacks.
func exceptions() map[string]string {
	except := map[string]string{}
	for _, name := range []string{
		"settings/capabilities", "settings/dns", "settings/host-aliases", "settings/hostname",
		"settings/limits", "settings/read-only-root", "settings/run-as-user", "settings/sysctls",
	} {
		except[name] = "the containers of this test are goroutines, which have nothing of it"
	}
	for _, name := range []string{"attach/output", "port-forward/both-ways", "port-forward/refused"} {
		except[name] = "ECI has no such request, and the provider says so"
	}
	except["probes/network"] = "the containers of this test are goroutines, which have no address: TestAProbeIsDoneOnce says which of ECI and this node does which probe"
	except["probes/startup"] = "its pod is not to be restarted, and ECI has no operation that ends a group and keeps it: TestStartupProbeLetsASlowProgramStart has one that is"
	except["exec/output"] = "the shell that tells how a command ended makes one output of both kinds"
	except["exec/terminal"] = "nobody describes how a session is told another size; the first one is set"
	for _, name := range []string{"deletion/at-once", "deletion/shorter"} {
		except[name] = "a group is given the time that it was created with: the delete of ECI has none"
	}
	return except
}

// unproven returns the features whose fields are only passed on to ECI.
func unproven() map[capability.Feature]string {
	all := map[capability.Feature]string{
		capability.TokenVolumes:  "no check of the contract has tokens; the tests of the mapping write one",
		capability.NetworkProbes: "ECI does those by HTTP and TCP, and this node the others; the containers of this test are goroutines, which have no address",
	}
	for _, f := range []capability.Feature{
		capability.ContainerLimits, capability.HostAliases, capability.DNS, capability.Hostname, capability.SharedProcesses,
		capability.RunAsUser, capability.Capabilities, capability.ReadOnlyRoot, capability.Sysctls, capability.OtherVolumes, capability.PersistentVolume,
	} {
		all[f] = "ECI gets the fields as they are, by the tests of the mapping; the containers of this test are goroutines, without what they act on"
	}
	return all
}
