// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	podresource "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// admit fails a pod that has not been at the backend and for which the node has no room, as a
// kubelet does, and reports whether it may come. Somebody bound it past the scheduler, or the scheduler
// knew less. Only a provider that declares what it has is taken at its word about capacity.
func (c *PodController) admit(key string, api *corev1.Pod) bool {
	if c.declared == nil {
		return true
	}
	a := &c.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if st := c.states.get(key); st.admitted || lifecycle.Started(api, st.sent) {
		a.take(api)
		return true
	}
	v := c.room(api)
	if v != nil {
		a.keep(c.admitted(api)) // some may have ended since
		v = c.room(api)
	}
	if v != nil {
		c.fail(key, api, corev1.EventTypeWarning, v)
		c.syncLane.Add(key)
		return false
	}
	c.states.of(key, api.UID, func(st *podState) { st.admitted = true })
	a.take(api)
	return true
}

// count notes what a pod takes that has come to the backend some other way, or asks for something else now.
func (c *PodController) count(api *corev1.Pod, sent lifecycle.Sent) {
	if c.declared != nil && lifecycle.Started(api, sent) && !lifecycle.Terminal(&api.Status) {
		c.admission.mu.Lock()
		defer c.admission.mu.Unlock()
		c.admission.take(api)
	}
}

// room returns why the node has no room for a pod beside those that have a place, nil if it has. The mu of
// admission is held.
func (c *PodController) room(api *corev1.Pod) *lifecycle.Verdict {
	if port := c.admission.taken(api); port != "" {
		return &lifecycle.Verdict{Reason: "NodePorts", Message: "Pod was rejected: host port " + port + " of the node is taken by another pod"}
	}
	if c.env.NodeAllocatable == nil {
		return nil
	}
	wanted := podresource.PodRequests(api, podresource.PodResourcesOptions{})
	wanted[corev1.ResourcePods] = resource.MustParse("1")
	return shortage(wanted, c.admission.used, c.env.NodeAllocatable())
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
