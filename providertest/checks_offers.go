// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// nodeConfigurer is a provider that writes the capacity of the node.
type nodeConfigurer interface {
	ConfigureNode(ctx context.Context, n *corev1.Node)
}

// smallest is the requested amount of each resource of all nodes; of other resources the check requests the
// smallest possible amount.
var smallest = map[corev1.ResourceName]string{
	corev1.ResourceCPU: "10m", corev1.ResourceMemory: "16Mi", corev1.ResourceEphemeralStorage: "1Mi",
}

var offers = []Check{
	{
		Name: "offers/requests", Why: "the scheduler binds no pod that requests a resource that the node does not offer, and a resource that is offered and refused fails every pod that asks for it",
		Run: func(c *C) {
			s := c.openProvider()
			configurer, ok := s.provider.(nodeConfigurer)
			if !ok {
				c.Skipf("the provider does not write what the node offers")
			}
			n := c.env.Node.DeepCopy()
			configurer.ConfigureNode(c.ctx, n)
			offered := n.Status.Allocatable
			if offered == nil {
				offered = n.Status.Capacity // like the API server
			}
			for name := range smallest {
				if q := offered[name]; q.Sign() <= 0 {
					c.Errorf("the node offers %s of %s, want more than 0: pods that request it are never scheduled", q.String(), name)
				}
			}
			limits := true
			if d, ok := s.provider.(capability.Declarer); ok {
				limits = d.Capabilities().Has(capability.ContainerLimits)
			}
			pod := c.newPod("requests", stayingProgram())
			r := &pod.Spec.Containers[0].Resources
			r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
			for name, q := range offered {
				switch text, common := smallest[name]; {
				case name == corev1.ResourcePods || q.Sign() <= 0:
				case common:
					r.Requests[name] = resource.MustParse(text)
				case !limits:
					c.Errorf("the node offers %s of %s, and pods with limits, without which nobody can request it, are refused", q.String(), name)
				default:
					r.Requests[name] = leastAmount(name)
					r.Limits[name] = leastAmount(name)
				}
			}
			c.startPod(pod)
		},
	},
}

// leastAmount returns the least amount of a resource of devices or huge pages: one.
func leastAmount(name corev1.ResourceName) resource.Quantity {
	if size, huge := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); huge {
		return resource.MustParse(size)
	}
	return resource.MustParse("1")
}
