// SPDX-License-Identifier: Apache-2.0

package podruntime_test

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// TestPowerOverTheMachineIsGivenWhenAsked: what breaks out of containers is refused by default.
func TestPowerOverTheMachineIsGivenWhenAsked(t *testing.T) {
	powers := []capability.Feature{capability.Privileged, capability.HostNetwork, capability.HostNamespaces, capability.UnmaskedProc, capability.HostPath}
	none := podruntime.Capabilities(podruntime.Config{})
	all := podruntime.Capabilities(podruntime.Config{Privileged: true, HostPaths: []string{"/"}})
	for _, f := range powers {
		if none.Has(f) {
			t.Errorf("%s is there by default", f)
		}
		if !all.Has(f) {
			t.Errorf("%s is not there although it is asked for", f)
		}
	}
	if !none.Has(capability.EmptyDir) || !none.Has(capability.Sidecars) {
		t.Error("emptyDir or sidecars are missing by default")
	}
}

func TestRuntimeBelowHasLess(t *testing.T) {
	d := podruntime.Capabilities(podruntime.Config{
		Lacks: map[capability.Feature]string{capability.HostPorts: "there is one network"},
		Notes: map[capability.Feature]string{capability.HostPorts: "not shown", capability.ContainerLimits: "memory only"},
	})
	if d.Has(capability.HostPorts) || !d.Has(capability.ContainerLimits) {
		t.Error("what the runtime lacks is there, or what it has is not")
	}
}
