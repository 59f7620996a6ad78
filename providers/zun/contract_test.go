// SPDX-License-Identifier: Apache-2.0

package zun

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
		Container: func(_ *corev1.Pod, c *corev1.Container, p program.Program) error {
			c.Image, c.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 20 * time.Millisecond, Tick: time.Second, Parallel: 12,
		Subject:  providertest.Subject{Provider: "zun", Backend: "an emulator of Zun, whose containers are goroutines"},
		Unproven: unproven(), Except: exceptions(), OwnStartErrors: true,
	})
}

// exceptions returns the excluded checks: they depend on the container's machine, or on features that Zun lacks.
func exceptions() map[string]string {
	except := map[string]string{}
	for reason, names := range map[string][]string{
		"the containers of this test are goroutines, which have nothing of it":                     {"probes/network", "settings/hostname", "settings/limits"},
		"a container of Zun is one: capsules are in TestCapsule":                                   {"environment/own"},
		"Zun writes files with one mode, and the provider says so":                                 {"files/mode", "files/items"},
		"the shell that tells how a command ended makes one output of both kinds":                  {"exec/output"},
		"Zun attaches to containers that have stdin, and the provider says so":                     {"attach/output"},
		"the containers of this test are goroutines, which have no address: package service dials": {"port-forward/both-ways", "port-forward/refused", "errors/no-port-forward"},
		"what Zun tells of CPU is an average since the boot of its host, which is no rate":         {"stats/summary", "stats/ended"},
	} {
		for _, name := range names {
			except[name] = reason
		}
	}
	return except
}

// unproven returns features whose fields are passed to Zun unchanged.
func unproven() map[capability.Feature]string {
	const field = "Zun gets the field as it is, by the tests of the mapping; the containers of this test are goroutines, without what it acts on"
	return map[capability.Feature]string{
		capability.TokenVolumes: "no check of the contract has tokens; the tests of the mapping write one",
		capability.Hostname:     field, capability.ContainerLimits: field, capability.NetworkProbes: field,
		capability.EmptyDir: "the check of it has two containers in a pod; the tests of the mapping have the Cinder volume",
	}
}
