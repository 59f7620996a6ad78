// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
)

// admission decides on one pod at a time: two that fit alone may not fit both. It keeps sums, as looking at
// all pods for each new one takes minutes on a node with thousands. A pod that has ended keeps its place until it is
// gone or somebody lacks room, so the sums are what is taken or more.
type admission struct {
	mu     sync.Mutex
	places map[types.UID]place                 // guarded by mu
	used   corev1.ResourceList                 // guarded by mu: what all places take, and how many they are
	ports  map[int32]map[types.UID][]portClaim // guarded by mu: the ports of the node, by number
}

// place is what a pod takes of the node.
type place struct {
	version  string // of the pod
	requests corev1.ResourceList
	ports    []portClaim
}

// portClaim is one port of the node on one address.
type portClaim struct {
	number   int32
	protocol corev1.Protocol
	ip       string
}

// take gives a pod its place, or one of the size that it needs now. mu is held.
func (a *admission) take(pod *corev1.Pod) {
	old, has := a.places[pod.UID]
	if has && old.version == pod.ResourceVersion && old.version != "" {
		return
	}
	a.release(pod.UID)
	if a.places == nil {
		a.places, a.used, a.ports = map[types.UID]place{}, corev1.ResourceList{}, map[int32]map[types.UID][]portClaim{}
	}
	p := place{
		version: pod.ResourceVersion, ports: hostPorts(pod),
		requests: podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true}),
	}
	p.requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	a.places[pod.UID] = p
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

// release frees the place of a pod, if it has one. mu is held.
func (a *admission) release(uid types.UID) {
	p, has := a.places[uid]
	if !has {
		return
	}
	delete(a.places, uid)
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

// leave is release of a pod that is gone.
func (a *admission) leave(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(uid)
}

// keep frees the places of all other pods. mu is held.
func (a *admission) keep(pods []*corev1.Pod) {
	stay := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		stay[pod.UID] = true
		a.take(pod)
	}
	for uid := range a.places {
		if !stay[uid] {
			a.release(uid)
		}
	}
}

// taken returns the first host port of a pod that another one has, "" if none has. mu is held.
func (a *admission) taken(pod *corev1.Pod) string {
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
