// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// sizes has the resources with which the containers of a pod were created, by container name. It is never changed, and is shared with the
// cache.
type sizes map[string]corev1.ResourceRequirements

func sizesOf(pod *corev1.Pod) *sizes {
	s := sizes{}
	eachContainer(pod, func(c *corev1.Container) { s[c.Name] = c.Resources })
	return &s
}

func eachContainer(pod *corev1.Pod, do func(*corev1.Container)) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			do(&list[i])
		}
	}
}

// restoreSizes sets the resources of the containers in a private copy of a pod to those at their creation.
func (s *sizes) restoreSizes(pod *corev1.Pod) {
	if s != nil {
		eachContainer(pod, func(c *corev1.Container) {
			if made, known := (*s)[c.Name]; known {
				c.Resources = *made.DeepCopy()
			}
		})
	}
}

// noResize returns the message that the backend cannot give the running containers of a pod their new resources,
// or "" if the resources are unchanged.
func (s *sizes) noResize(pod *corev1.Pod) string {
	var other []string
	if s != nil {
		eachContainer(pod, func(c *corev1.Container) {
			if made, known := (*s)[c.Name]; known && !equality.Semantic.DeepEqual(made, c.Resources) {
				other = append(other, c.Name)
			}
		})
	}
	if len(other) == 0 {
		return ""
	}
	return "the backend does not change the resources of containers that run: " + strings.Join(other, ", ")
}

func resizePending(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
}
