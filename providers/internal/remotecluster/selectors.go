// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Pods of several home namespaces and home clusters may share a remote namespace. So each remote pod has the
// labels of namespaceLabels, which home pods cannot set, and each selector is extended by these labels.

// namespaceLabels returns the labels of all remote pods of a namespace at home, of any node.
func (h Home) namespaceLabels(namespace string) map[string]string {
	return map[string]string{LabelCluster: labelValue(h.Cluster), LabelNamespace: namespace}
}

// narrowSelector narrows a selector of home to pods of its own namespace. An empty selector selects nothing, and
// stays empty.
func (h Home) narrowSelector(namespace string, selector map[string]string) map[string]string {
	if len(selector) == 0 {
		return selector
	}
	out := maps.Clone(selector)
	maps.Copy(out, h.namespaceLabels(namespace))
	return out
}

// narrowAffinity narrows the affinity of a pod at home to pods of its own namespace.
func (h Home) narrowAffinity(namespace string, a *corev1.Affinity) (*corev1.Affinity, error) {
	a = a.DeepCopy()
	var terms []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range terms {
		if t.NamespaceSelector != nil || slices.ContainsFunc(t.Namespaces, func(n string) bool { return n != namespace }) {
			return nil, errdefs.InvalidInputf("affinity to pods of other namespaces is not taken to another cluster: leave namespaces and namespaceSelector away")
		}
		t.Namespaces = nil // nil means the namespace of the remote pod
		if t.LabelSelector == nil {
			continue // a term without a selector selects no pods
		}
		if t.LabelSelector.MatchLabels == nil {
			t.LabelSelector.MatchLabels = map[string]string{}
		}
		maps.Copy(t.LabelSelector.MatchLabels, h.namespaceLabels(namespace))
	}
	return a, nil
}

// markNamespace adds LabelNamespace to a remote pod that an older version created without it.
func (c *Cluster) markNamespace(ctx context.Context, home, there *corev1.Pod) error {
	if there.Labels[LabelNamespace] != "" || isOwner(there) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": there.UID, "labels": map[string]string{LabelNamespace: home.Namespace}}})
	if err == nil {
		_, err = c.client.CoreV1().Pods(there.Namespace).Patch(ctx, there.Name, patchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("label pod %s with its namespace at home: %w", podKey(there), err)
	}
	return nil
}
