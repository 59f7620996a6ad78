// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// handedPods lists the pods of a node in the form that the provider received.
type handedPods struct {
	corev1listers.PodLister
	pods **node.PodController // nil while the provider is being created
}

// List returns the pods that match the selector.
func (h handedPods) List(selector labels.Selector) ([]*corev1.Pod, error) {
	return h.hand(h.PodLister.List(selector))
}

// Pods returns a lister of the pods in a namespace.
func (h handedPods) Pods(namespace string) corev1listers.PodNamespaceLister {
	return handedNamespace{h.PodLister.Pods(namespace), h}
}

// hand replaces each pod of a list by the form that the provider received. The caller owns the list.
func (h handedPods) hand(all []*corev1.Pod, err error) ([]*corev1.Pod, error) {
	for i := range all {
		all[i] = h.of(all[i])
	}
	return all, err
}

// of returns the form of a pod that the provider received.
func (h handedPods) of(pod *corev1.Pod) *corev1.Pod {
	if pods := *h.pods; pods != nil {
		return pods.PodForProvider(pod)
	}
	return pod
}

// handedNamespace is handedPods for the pods in a namespace.
type handedNamespace struct {
	corev1listers.PodNamespaceLister
	node handedPods
}

// List returns the pods that match the selector.
func (h handedNamespace) List(selector labels.Selector) ([]*corev1.Pod, error) {
	return h.node.hand(h.PodNamespaceLister.List(selector))
}

// Get returns the pod with the name.
func (h handedNamespace) Get(name string) (*corev1.Pod, error) {
	pod, err := h.PodNamespaceLister.Get(name)
	if err != nil {
		return nil, err
	}
	return h.node.of(pod), nil
}
