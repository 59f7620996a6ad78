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

// TestContract runs the contract of providers on the emulator, whose containers are goroutines.
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

// exceptions are the checks of what a container sees of its machine, and of what Zun does not have.
func exceptions() map[string]string {
	except := map[string]string{}
	return except
}

// unproven are features whose fields are passed on as they are.
func unproven() map[capability.Feature]string {
	return map[capability.Feature]string{
		capability.TokenVolumes: "no check of the contract has tokens; the tests of the mapping write one",
	}
}
