// SPDX-License-Identifier: Apache-2.0

// Package admission decides whether the node has room for a pod: it sums up resources, and tracks the ports of the node.
//
// The guarantee: it decides about one pod at a time, because two pods may fit separately but not together.
//
// Note: an ended pod keeps its reservation until it is gone or until another pod lacks room, so the sums are upper bounds. Checking all pods
// for each new pod would take minutes on a node with thousands of pods.
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

// Allocations has the reservations of the pods of one node. The zero value is a node without pods. It is safe for concurrent use.
type Allocations struct {
	mu    sync.Mutex
	pods  map[types.UID]allocation            // guarded by mu
	used  corev1.ResourceList                 // guarded by mu: the sums of all allocations, and their number
	ports map[int32]map[types.UID][]portClaim // guarded by mu: the ports of the node, by number
}

// allocation is the reservation of a pod.
type allocation struct {
	version  string // of the pod
	requests corev1.ResourceList
	ports    []portClaim
}

// Rejection is the reason why a node has no room for a pod, with a kubelet's reason and message.
type Rejection struct{ Reason, Message string }

// Admit reserves the resources of a pod, or returns why the node has no room for it. With a nil allocatable, the resources of the node are unknown
// and only ports count. If the node lacks room, Admit calls ended, which returns the pods that no longer need their reservation. Admit holds a lock
// during the call, so ended must not call Allocations.
func (a *Allocations) Admit(pod *corev1.Pod, allocatable corev1.ResourceList, ended func(reserved []types.UID) []types.UID) *Rejection {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.rejectPod(pod, allocatable)
	if r != nil {
		for _, uid := range ended(slices.Collect(maps.Keys(a.pods))) {
			a.releaseLocked(uid)
		}
		r = a.rejectPod(pod, allocatable)
	}
	if r == nil {
		a.reservePod(pod)
	}
	return r
}

// Reserve records the resources of a pod that the node already has, or that has changed.
func (a *Allocations) Reserve(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reservePod(pod)
}

// Release frees the reservation of a pod, if there is one.
func (a *Allocations) Release(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.releaseLocked(uid)
}

// Reserved returns the number of pods with a reservation, and the sums of their ports and resources.
func (a *Allocations) Reserved() (pods, ports int, used corev1.ResourceList) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pods), len(a.ports), a.used.DeepCopy()
}

// rejectPod returns the reason why the node has no room for a pod in addition to the reservations, or nil if it has room. The caller holds mu.
func (a *Allocations) rejectPod(pod *corev1.Pod, allocatable corev1.ResourceList) *Rejection {
	if port := a.takenPort(pod); port != "" {
		return &Rejection{"NodePorts", "Pod was rejected: host port " + port + " of the node is taken by another pod"}
	}
	if allocatable == nil {
		return nil
	}
	wanted := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
	wanted[corev1.ResourcePods] = resource.MustParse("1")
	return findShortage(wanted, a.used, allocatable)
}

// portClaim is one port of the node on one address.
type portClaim struct {
	number   int32
	protocol corev1.Protocol
	ip       string
}

// reservePod records the current resources of a pod. The caller holds mu.
func (a *Allocations) reservePod(pod *corev1.Pod) {
	old, has := a.pods[pod.UID]
	if has && old.version == pod.ResourceVersion && old.version != "" {
		return
	}
	a.releaseLocked(pod.UID)
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

// releaseLocked is Release with mu held.
func (a *Allocations) releaseLocked(uid types.UID) {
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

// takenPort returns the first host port of a pod that another pod uses, or "". The caller holds mu.
func (a *Allocations) takenPort(pod *corev1.Pod) string {
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

// hostPorts returns the host ports of a pod.
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

// findShortage rejects a pod that requests more than is available (OutOfcpu, OutOfmemory, OutOfpods), for the first such resource by name. Like a
// kubelet, it ignores a resource that the provider does not report: an administrator may have added it to the Node object, or a scheduler may count
// it for the whole cluster. A provider that wants to refuse pods with a device must report 0.
func findShortage(wanted, used, allocatable corev1.ResourceList) *Rejection {
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
