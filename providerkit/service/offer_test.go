// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestOffersAreToldOnce: a listener gets the last offered capacity, even if the offer came before the listener.
// It does not get a capacity that the node already has.
func TestOffersAreToldOnce(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		cpus := func(n string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
		}
		p.Offer(cpus("1"))
		configured := &corev1.Node{}
		p.ConfigureNode(t.Context(), configured)
		configured.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250 // by the program, afterwards
		var told []string
		p.NotifyNodeStatus(t.Context(), func(n *corev1.Node) {
			told = append(told, n.Status.Capacity.Cpu().String()+n.Status.Allocatable.Cpu().String())
			if n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
				t.Error("a report has lost what the node had")
			}
		})
		for _, n := range []string{"2", "2", "2000m", "3"} {
			p.Offer(cpus(n))
		}
		if len(told) != 3 || told[0] != "11" || told[1] != "22" || told[2] != "33" {
			t.Errorf("it told %q, want 1, 2 and 3 CPUs, once each", told)
		}
		if configured.Status.Capacity.Cpu().String() == "3" {
			t.Error("the node of the program was changed")
		}
	})
}

// TestNodeHasTheRuntime checks that the node names the runtime of the configuration.
func TestNodeHasTheRuntime(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, _ := h.start(nil, func(c *Config) { c.Runtime = "cloud://1" })
		n := &corev1.Node{}
		if p.ConfigureNode(t.Context(), n); n.Status.NodeInfo.ContainerRuntimeVersion != "cloud://1" {
			t.Errorf("the runtime is %q", n.Status.NodeInfo.ContainerRuntimeVersion)
		}
	})
}
