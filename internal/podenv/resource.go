// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// resourceValue returns a request or limit of a container in units of the divisor, rounded up.
//
// For cpu, memory and ephemeral storage, a container without a limit has the limit of the pod, or else the allocatable amount of the node. If that is
// unknown, the value is unknown. (A kubelet returns 0 for an init container without limits that containerName selects; here every container gets the
// documented default.)
func (r *resolver) resourceValue(c *corev1.Container, ref *corev1.ResourceFieldSelector, path *field.Path) (string, answer, error) {
	resources := &c.Resources
	if ref.ContainerName != "" && ref.ContainerName != c.Name {
		if resources = containerResources(r.pod, ref.ContainerName); resources == nil {
			return "", absent, errdefs.InvalidInputf("%s: the pod has no container %q", path.Child("containerName"), ref.ContainerName)
		}
	}
	list, rest, _ := strings.Cut(ref.Resource, ".")
	name := corev1.ResourceName(rest)
	huge := strings.HasPrefix(rest, corev1.ResourceHugePagesPrefix)
	if !huge && name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
		list = ""
	}
	var quantity resource.Quantity
	switch list {
	case "requests":
		quantity = resources.Requests[name]
	case "limits":
		quantity = resources.Limits[name]
		if quantity.IsZero() && !huge { // huge pages are never overcommitted: without a limit, the value is zero
			var ok bool
			if quantity, ok = r.defaultLimit(name); !ok {
				return "", unknown, nil
			}
		}
	default:
		return "", absent, errdefs.InvalidInputf("%s: resource %q cannot be a variable: use limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>",
			path.Child("resource"), ref.Resource)
	}
	if ref.Divisor.Sign() < 0 {
		return "", absent, errdefs.InvalidInputf("%s: %s is negative", path.Child("divisor"), ref.Divisor.String())
	}
	return strconv.FormatInt(divideQuantity(name, quantity, ref.Divisor), 10), known, nil
}

func (r *resolver) defaultLimit(name corev1.ResourceName) (resource.Quantity, bool) {
	// The API has no pod-level ephemeral storage.
	if pod := r.pod.Spec.Resources; pod != nil && name != corev1.ResourceEphemeralStorage {
		if limit, ok := pod.Limits[name]; ok && !limit.IsZero() {
			return limit, true
		}
	}
	if r.cfg.NodeAllocatable == nil {
		return resource.Quantity{}, false
	}
	limit, ok := r.cfg.NodeAllocatable()[name]
	return limit, ok
}

// divideQuantity divides a quantity and rounds up. CPU counts in thousandths, everything else in whole units. A zero divisor means one.
func divideQuantity(name corev1.ResourceName, quantity, divisor resource.Quantity) int64 {
	if divisor.IsZero() {
		divisor = *resource.NewQuantity(1, resource.DecimalSI)
	}
	q, d := quantity.Value(), divisor.Value()
	// Larger quantities overflow in thousandths.
	if name == corev1.ResourceCPU && q < math.MaxInt64/1000 && d < math.MaxInt64/1000 {
		q, d = quantity.MilliValue(), divisor.MilliValue()
	}
	result := q / d
	if q%d > 0 {
		result++
	}
	return result
}

func containerResources(pod *corev1.Pod, name string) *corev1.ResourceRequirements {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i].Resources
			}
		}
	}
	return nil
}
