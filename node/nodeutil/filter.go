// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kubeinformers "k8s.io/client-go/informers"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// FilterPodsForNodeName returns a filter for pods bound to the node name.
func FilterPodsForNodeName(name string) node.PodEventFilterFunc {
	return func(_ context.Context, pod *corev1.Pod) bool {
		return pod.Spec.NodeName == name
	}
}

// PodFilters returns a filter that accepts pods that match any of filters. Without filters it accepts no pod.
func PodFilters(filters ...node.PodEventFilterFunc) node.PodEventFilterFunc {
	return func(ctx context.Context, pod *corev1.Pod) bool {
		for _, keep := range filters {
			if keep(ctx, pod) {
				return true
			}
		}
		return false
	}
}

// PodInformerFilter returns an informer option that selects pods bound to the node name. It applies to every informer of the factory, so
// use such a factory only for pods.
func PodInformerFilter(name string) kubeinformers.SharedInformerOption {
	return kubeinformers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", name).String()
	})
}

// dropManagedFields is an informer transform. The managed fields are often half the size of an object, and no code here reads them.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil // tombstones are passed on
}
