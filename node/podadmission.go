// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	podresource "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// admission decides on one pod at a time: two that fit alone may not fit both.
type admission struct{ mu sync.Mutex }

// admit fails a pod that has not been at the backend and for which the node has no room, as a
// kubelet does, and reports whether it may come. Somebody bound it past the scheduler, or the scheduler
// knew less. Only a provider that declares what it has is taken at its word about capacity.
func (c *PodController) admit(key string, api *corev1.Pod) bool {
	if c.declared == nil {
		return true
	}
	c.admission.mu.Lock()
	defer c.admission.mu.Unlock()
	if st := c.states.get(key); st.admitted || lifecycle.Started(api, st.sent) {
		return true
	}
	if v := c.room(api); v != nil {
		c.fail(key, api, corev1.EventTypeWarning, v)
		c.syncLane.Add(key)
		return false
	}
	c.states.of(key, api.UID, func(st *podState) { st.admitted = true })
	return true
}

// room returns why the node has no room for a pod beside those that were admitted, nil if it has.
func (c *PodController) room(api *corev1.Pod) *lifecycle.Verdict {
	others := c.admitted(api)
	if port := takenPort(api, others); port != "" {
		return &lifecycle.Verdict{Reason: "NodePorts", Message: "Pod was rejected: host port " + port + " of the node is taken by another pod"}
	}
	if c.env.NodeAllocatable == nil {
		return nil
	}
	used := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(others)), resource.DecimalSI)}
	for _, other := range others {
		for name, q := range podresource.PodRequests(other, podresource.PodResourcesOptions{UseStatusResources: true}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	wanted := podresource.PodRequests(api, podresource.PodResourcesOptions{})
	wanted[corev1.ResourcePods] = resource.MustParse("1")
	return shortage(wanted, used, c.env.NodeAllocatable())
}

// shortage returns the verdict on a pod that wants more than is left, by the first resource in the order of
// names. A resource that the provider does not speak of is not looked at, as by a kubelet: an administrator may have written it into
// the Node object, or a scheduler counts it for the whole cluster, and either has found room. A provider that wants pods
// with a device refused says that it has none of it.
func shortage(wanted, used, allocatable corev1.ResourceList) *lifecycle.Verdict {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		has, known := allocatable[name]
		want, taken := wanted[name], used[name]
		if want.IsZero() || !known {
			continue
		}
		sum := want.DeepCopy()
		sum.Add(taken)
		if sum.Cmp(has) > 0 {
			return &lifecycle.Verdict{Reason: "OutOf" + string(name), Message: fmt.Sprintf(
				"Pod was rejected: Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s", name, want.String(), taken.String(), has.String())}
		}
	}
	return nil
}

// admitted returns the pods that have a place on the node.
func (c *PodController) admitted(but *corev1.Pod) (pods []*corev1.Pod) {
	all, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil // a lister over a cache has no errors
	}
	for _, pod := range all {
		st := c.states.get(keyOf(pod))
		ours := st.sent.UID == pod.UID && (st.admitted || lifecycle.Started(pod, st.sent))
		ended := lifecycle.Terminal(&pod.Status) || st.finished(pod.UID) || st.verdict != nil && st.stopped
		if pod.UID != but.UID && ours && !ended {
			pods = append(pods, pod)
		}
	}
	return pods
}

// takenPort returns the first host port of a pod that one of the others has, "" if none has.
func takenPort(pod *corev1.Pod, others []*corev1.Pod) string {
	wanted := hostPorts(pod)
	for _, other := range others {
		for _, theirs := range hostPorts(other) {
			for _, p := range wanted {
				sameIP := p.HostIP == theirs.HostIP || anyIP(p.HostIP) || anyIP(theirs.HostIP)
				if sameIP && p.HostPort == theirs.HostPort && protocol(p) == protocol(theirs) {
					return fmt.Sprintf("%d/%s", p.HostPort, protocol(p))
				}
			}
		}
	}
	return ""
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

func protocol(p corev1.ContainerPort) corev1.Protocol {
	if p.Protocol == "" {
		return corev1.ProtocolTCP
	}
	return p.Protocol
}

// hostPorts returns the ports of the node that a pod takes.
func hostPorts(pod *corev1.Pod) (ports []corev1.ContainerPort) {
	add := func(containers []corev1.Container) {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if p.HostPort != 0 {
					ports = append(ports, p)
				}
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
