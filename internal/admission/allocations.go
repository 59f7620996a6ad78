// SPDX-License-Identifier: Apache-2.0

// Package admission decides which pods the node has room for: resources by their sums, and ports of the node.
//
// The guarantee: pods are decided on one at a time, since two that fit alone may not fit both.
//
// What surprises: a pod that has ended keeps what it reserved until it is gone or somebody lacks room, so the sums are what is
// reserved or more. Looking at all pods for each new one takes minutes on a node with thousands.
package admission

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
)

// Allocations is what the pods of one node have reserved. The zero value is a node without pods. It can be used from any goroutine.
type Allocations struct {
	mu    sync.Mutex
	pods  map[types.UID]allocation            // guarded by mu
	used  corev1.ResourceList                 // guarded by mu: the sums of all allocations, and how many they are
	ports map[int32]map[types.UID][]portClaim // guarded by mu: the ports of the node, by number
}

// allocation is what a pod reserves of the node.
type allocation struct {
	version  string // of the pod
	requests corev1.ResourceList
	ports    []portClaim
}

// Rejection is why a node has no room for a pod, in a kubelet's words.
type Rejection struct{ Reason, Message string }

// Admit reserves what a pod needs, or says why the node has no room for it. A nil allocatable is a node whose resources are not
// known: then only ports count. Where room is lacking, ended returns those of the pods with a reservation that need none any more. It
// is called with a lock held, and must not call Allocations.
func (a *Allocations) Admit(pod *corev1.Pod, allocatable corev1.ResourceList, ended func(reserved []types.UID) []types.UID) *Rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.reject(pod, allocatable)
	if r != nil {
		for _, uid := range ended(slices.Collect(maps.Keys(a.pods))) {
			a.release(uid)
		}
		r = a.reject(pod, allocatable)
	}
	if r == nil {
		a.reserve(pod)
	}
	return r
}

// Reserve notes what a pod takes that the node has already, or that asks for something else now.
func (a *Allocations) Reserve(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reserve(pod)
}

// Release frees what a pod reserved, if it did.
func (a *Allocations) Release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(uid)
}

// Reserved returns how many pods have reserved something, and the sums of what they did.
func (a *Allocations) Reserved() (pods, ports int, used corev1.ResourceList) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pods), len(a.ports), a.used.DeepCopy()
}

// reject returns why the node has no room for a pod beside those that reserved some, nil if it has. mu is held.
func (a *Allocations) reject(pod *corev1.Pod, allocatable corev1.ResourceList) *Rejection {
	if port := a.taken(pod); port != "" {
		return &Rejection{"NodePorts", "Pod was rejected: host port " + port + " of the node is taken by another pod"}
	}
	if allocatable == nil {
		return nil
	}
	wanted := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	wanted[corev1.ResourcePods] = resource.MustParse("1")
	return shortage(wanted, a.used, allocatable)
}

// portClaim is one port of the node on one address.
type portClaim struct {
	number   int32
	protocol corev1.Protocol
	ip       string
}

// reserve gives a pod what it needs now. mu is held.
func (a *Allocations) reserve(pod *corev1.Pod) {
	old, has := a.pods[pod.UID]
	if has && old.version == pod.ResourceVersion && old.version != "" {
		return
	}
	a.release(pod.UID)
	if a.pods == nil {
		a.pods, a.used, a.ports = map[types.UID]allocation{}, corev1.ResourceList{}, map[int32]map[types.UID][]portClaim{}
	}
	p := allocation{
		version: pod.ResourceVersion, ports: hostPorts(pod),
		requests: podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true}),
	}
	p.requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	a.pods[pod.UID] = p
	for name, q := range p.requests {
		sum := a.used[name]
		sum.Add(q)
		a.used[name] = sum
	}
	for _, claim := range p.ports {
		if a.ports[claim.number] == nil {
			a.ports[claim.number] = map[types.UID][]portClaim{}
		}
		a.ports[claim.number][pod.UID] = append(a.ports[claim.number][pod.UID], claim)
	}
}

// release is Release with mu held.
func (a *Allocations) release(uid types.UID) {
	p, has := a.pods[uid]
	if !has {
		return
	}
	delete(a.pods, uid)
	for name, q := range p.requests {
		sum := a.used[name]
		sum.Sub(q)
		a.used[name] = sum
	}
	for _, claim := range p.ports {
		if delete(a.ports[claim.number], uid); len(a.ports[claim.number]) == 0 {
			delete(a.ports, claim.number)
		}
	}
}

// taken returns the first host port of a pod that another one has, "" if none has. mu is held.
func (a *Allocations) taken(pod *corev1.Pod) string {
	for _, p := range hostPorts(pod) {
		for uid, claims := range a.ports[p.number] {
			clash := func(c portClaim) bool {
				return c.protocol == p.protocol && (c.ip == p.ip || anyIP(c.ip) || anyIP(p.ip))
			}
			if uid != pod.UID && slices.ContainsFunc(claims, clash) {
				return fmt.Sprintf("%d/%s", p.number, p.protocol)
			}
		}
	}
	return ""
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

// hostPorts returns the ports of the node that a pod takes.
func hostPorts(pod *corev1.Pod) (ports []portClaim) {
	add := func(containers []corev1.Container) {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.HostPort == 0 {
					continue
				}
				if p.Protocol == "" {
					p.Protocol = corev1.ProtocolTCP
				}
				ports = append(ports, portClaim{p.HostPort, p.Protocol, p.HostIP})
			}
		}
	}
	add(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add([]corev1.Container{c})
		}
	}
	return ports
}

// shortage rejects a pod that wants more than is left (OutOfcpu, OutOfmemory, OutOfpods), by the first resource in the order of
// names. A resource that the provider does not speak of is not looked at, as by a kubelet: an administrator may have written it into
// the Node object, or a scheduler counts it for the whole cluster, and either has found room. A provider that wants pods
// with a device refused says that it has none of it.
func shortage(wanted, used, allocatable corev1.ResourceList) *Rejection {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		has, known := allocatable[name]
		want, taken := wanted[name], used[name]
		if want.IsZero() || !known {
			continue
		}
		sum := want.DeepCopy()
		sum.Add(taken)
		if sum.Cmp(has) > 0 {
			return &Rejection{"OutOf" + string(name), fmt.Sprintf(
				"Pod was rejected: Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s", name, want.String(), taken.String(), has.String())}
		}
	}
	return nil
}
