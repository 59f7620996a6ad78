// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// resourcePID is the name of the number of processes in kubeReserved and systemReserved. Nodes do not report this resource.
const resourcePID corev1.ResourceName = "pid"

// reservable are the resources that can be reserved, as in a kubelet.
var reservable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceEphemeralStorage, corev1.ResourceMemory, resourcePID}

// reserved are the resources of the machine that are kept from pods.
type reserved struct {
	// daemons are the resources that the configuration reserves for the node and other programs of the machine.
	daemons corev1.ResourceList
	// eviction are the amounts that must stay available; below them, pods are evicted.
	eviction corev1.ResourceList
}

// reserveResources adds up the reserved resources. It is an error if they exceed the resources of the machine.
func reserveResources(cfg Config) (reserved, error) {
	r := reserved{daemons: corev1.ResourceList{}, eviction: corev1.ResourceList{}}
	for _, of := range []struct {
		name    string
		setting map[string]string
	}{{"kubeReserved", cfg.KubeReserved}, {"systemReserved", cfg.SystemReserved}} {
		list, err := parseQuantities(of.setting)
		if err != nil {
			return r, fmt.Errorf("%s: %w", of.name, err)
		}
		for name, q := range list {
			sum := r.daemons[name]
			sum.Add(q)
			r.daemons[name] = sum
		}
	}
	capacity := stats.Capacity(cfg.Root, stats.DefaultPods)
	if most := stats.MaxPID(); most > 0 {
		capacity[resourcePID] = *resource.NewQuantity(most, resource.DecimalSI)
	}
	maps.Copy(capacity, cfg.Capacity)
	thresholds, err := eviction.Parse(cfg.EvictionHard)
	if err != nil {
		return r, fmt.Errorf("evictionHard: %w", err)
	}
	for _, t := range thresholds {
		name, is := map[eviction.Signal]corev1.ResourceName{
			eviction.MemoryAvailable: corev1.ResourceMemory, eviction.NodeFsAvailable: corev1.ResourceEphemeralStorage,
		}[t.Signal]
		if all := capacity[name]; is {
			r.eviction[name] = *resource.NewQuantity(t.Least(all.Value()), resource.BinarySI)
		}
	}
	for _, name := range reservable {
		has, known := capacity[name]
		if all := r.amountOf(name); known && all.Cmp(has) > 0 {
			return r, fmt.Errorf("kubeReserved, systemReserved and evictionHard keep %s of %s from pods, and the node has %s", all.String(), name, has.String())
		}
	}
	return r, nil
}

// amountOf returns the reserved amount of a resource.
func (r reserved) amountOf(name corev1.ResourceName) resource.Quantity {
	all := r.daemons[name].DeepCopy()
	all.Add(r.eviction[name])
	return all
}

// parseQuantities reads a setting such as memory: 500Mi.
func parseQuantities(setting map[string]string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, key := range slices.Sorted(maps.Keys(setting)) {
		name, value := corev1.ResourceName(key), setting[key]
		if !slices.Contains(reservable, name) {
			return nil, fmt.Errorf("%s: want one of %v", key, reservable)
		}
		if strings.HasSuffix(value, "%") {
			return nil, fmt.Errorf("%s: %q: want a quantity, not a share", key, value)
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", key, value, err)
		}
		if q.Sign() < 0 {
			return nil, fmt.Errorf("%s: %q is negative", key, value)
		}
		list[name] = q
	}
	return list, nil
}
