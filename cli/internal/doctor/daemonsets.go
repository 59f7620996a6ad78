// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// checkDaemonSets reports the DaemonSets that have a pod on the node although the pod cannot run there. The rollout of such a DaemonSet
// waits for this pod.
func checkDaemonSets(ctx context.Context, e *exam) {
	if e.noNames || e.bootstrap && e.AdminKubeconfig == "" || e.Node == nil {
		e.skip("the node and its credentials are not known yet")
		return
	}
	asks, err := e.proxyClient()
	if err != nil {
		e.skip("--admin-kubeconfig cannot be used")
		return
	}
	all, err := asks.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		e.skip("%s may not list DaemonSets, and need not; name the kubeconfig of an administrator with --admin-kubeconfig to check which of them put pods on the node that cannot run there", e.who())
		return
	case err != nil:
		e.unknown(fmt.Errorf("list DaemonSets: %w", err))
		return
	}
	node, err := asks.CoreV1().Nodes().Get(ctx, e.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		node = e.Node // the node will be registered with these labels
	case err != nil:
		e.unknown(fmt.Errorf("read node %s: %w", e.NodeName, err))
		return
	}
	for i := range all.Items {
		set := &all.Items[i]
		lands, err := landsOn(set, node)
		if err != nil || !lands {
			continue // the API server validates affinities, and an invalid affinity matches no node
		}
		name := set.Namespace + "/" + set.Name
		pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		switch lacks := unsupported(e.Declared, pod); {
		case lacks != "":
			e.warn(keepAway(set, node), "the pod of DaemonSet %s for node %s cannot run there, and its rollout waits for that pod: %s", name, node.Name, lacks)
		case slices.ContainsFunc(pod.Spec.Tolerations, toleratesEverything):
			e.warn(keepAway(set, node), "DaemonSet %s tolerates every taint, and so has a pod on node %s: if that pod cannot run there, the rollout waits for it", name, node.Name)
		}
	}
}

// landsOn reports whether the controller of DaemonSets would create a pod of set for the node.
func landsOn(set *appsv1.DaemonSet, node *corev1.Node) (bool, error) {
	pod := &corev1.Pod{Spec: set.Spec.Template.Spec}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return false, err
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.Contains(ofConditions, taint.Key) {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) }) {
			return false, nil
		}
	}
	return true, nil
}

// tolerates is the function ToleratesTaint of Kubernetes, which has different parameters in different versions.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Key != "" && (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}

// ofConditions are the taints that Kubernetes adds and removes with the conditions of a node. Pods of DaemonSets tolerate them.
var ofConditions = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure,
	corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable,
}

// unsupported returns the pod's features that the backend lacks; "" if it lacks none or has no declaration.
func unsupported(declared *capability.Declaration, pod *corev1.Pod) string {
	if declared == nil {
		return ""
	}
	var reasons []string
	for _, u := range declared.Check(pod) {
		reasons = append(reasons, u.String())
	}
	return strings.Join(reasons, "; ")
}

func toleratesEverything(t corev1.Toleration) bool {
	return t.Key == "" && t.Operator == corev1.TolerationOpExists && t.Effect != corev1.TaintEffectNoExecute
}

// agentLabels are the labels in the affinity of agents, with the value that the agents avoid; see
// docs/decisions/0055-agents-of-nodes.md.
var agentLabels = map[string]string{"type": "virtual-kubelet", "eks.amazonaws.com/compute-type": "fargate"}

// keepAway returns the advice that keeps a DaemonSet away from the node: a label that the affinity of the DaemonSet excludes, else an
// affinity for the node's type.
func keepAway(set *appsv1.DaemonSet, node *corev1.Node) string {
	a := set.Spec.Template.Spec.Affinity
	if a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for _, key := range slices.Sorted(maps.Keys(agentLabels)) {
			value := agentLabels[key]
			looksAt := func(x corev1.NodeSelectorRequirement) bool {
				return x.Key == key && x.Operator == corev1.NodeSelectorOpNotIn && slices.Contains(x.Values, value)
			}
			if !slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool { return !slices.ContainsFunc(t.MatchExpressions, looksAt) }) {
				return fmt.Sprintf("kubectl label node %s %s=%s: its affinity keeps it away from nodes with this label", node.Name, key, value)
			}
		}
	}
	return "give its pods a required nodeAffinity with the key type, the operator NotIn and the value virtual-kubelet: docs/deploy.md has it"
}
