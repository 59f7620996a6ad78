// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// machineType converts the type for drivers.
func (t Type) machineType() machine.Type {
	return machine.Type{
		Name: t.Name, MilliCPU: t.CPU.MilliValue(), Memory: t.Memory.Value(), GPUs: t.GPUs, GPUResource: t.gpu(),
		Price: millionths(t.Price), SpotPrice: millionths(t.SpotPrice),
	}
}

func (t Type) gpu() string {
	if t.GPUs == 0 {
		return ""
	}
	return cmp.Or(t.GPUResource, defaultGPU)
}

// millionths returns a price in millionths. 0 means unknown.
func millionths(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.ScaledValue(resource.Micro)
}

// priceOf returns the price of a machine for an hour. Without a spot price, a spot machine counts with the normal price, which is its maximum.
func priceOf(t machine.Type, spot bool) int64 {
	if spot && t.SpotPrice > 0 {
		return t.SpotPrice
	}
	return t.Price
}

// asked has the resources that a pod requests.
type asked struct {
	size sizing.Size
	gpus map[string]int64
	none bool // the pod requests nothing
}

// askedBy returns the resources that a pod requests: the larger of its requests and its limits, because the machine is the limit of the pod.
func askedBy(pod *corev1.Pod) asked {
	options := resourcehelper.PodResourcesOptions{}
	requests, limits := resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options)
	a := asked{size: sizing.Of(requests).Most(sizing.Of(limits)), gpus: map[string]int64{}}
	for _, list := range []corev1.ResourceList{requests, limits} {
		for name, q := range list {
			if strings.Contains(string(name), "/") && q.Value() > 0 {
				a.gpus[string(name)] = max(a.gpus[string(name)], q.Value())
			}
		}
	}
	a.none = a.size == sizing.Size{} && len(a.gpus) == 0
	return a
}

// room reports whether a type has room for the requested resources.
func (a asked) room(t machine.Type) bool {
	for name, n := range a.gpus {
		if name != t.GPUResource || n > t.GPUs {
			return false
		}
	}
	return t.MilliCPU >= a.size.MilliCPU && t.Memory >= a.size.Memory
}
