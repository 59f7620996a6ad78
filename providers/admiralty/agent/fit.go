// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// room is a node with its free resources.
type room struct {
	node *corev1.Node
	free corev1.ResourceList
}

// rooms has the free resources of the nodes of a target.
type rooms []*room

// roomsOf returns the resources that the pods on the nodes leave free.
func roomsOf(nodes []*corev1.Node, pods []*corev1.Pod) rooms {
	var all rooms
	byName := map[string]*room{}
	for _, n := range nodes {
		r := &room{n, n.Status.Allocatable.DeepCopy()}
		byName[n.Name] = r
		all = append(all, r)
	}
	for _, pod := range pods {
		if r := byName[pod.Spec.NodeName]; r != nil {
			r.takeRequests(pod.Spec.Containers[0].Resources.Requests) // after onlyRequests, the first container has all requests
		}
	}
	return all
}

// podNeeds returns the requests of a pod of the source cluster, including 1 for the resource pods. It excludes
// the overhead of the RuntimeClass, which may differ in the target.
func podNeeds(pod *corev1.Pod) corev1.ResourceList {
	return podRequests(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
}

func podRequests(pod *corev1.Pod, o resourcehelper.PodResourcesOptions) corev1.ResourceList {
	all := resourcehelper.PodRequests(pod, o)
	all[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return all
}

func (r *room) takeRequests(what corev1.ResourceList) {
	for name, q := range what {
		free := r.free[name]
		free.Sub(q)
		r.free[name] = free
	}
}

// lackingResource returns the first resource that is not sufficient, or "" if all are.
func (r *room) lackingResource(what corev1.ResourceList) corev1.ResourceName {
	var worst corev1.ResourceName
	for name, q := range what {
		if free := r.free[name]; q.Sign() > 0 && free.Cmp(q) < 0 && (worst == "" || name < worst) {
			worst = name
		}
	}
	return worst
}

// shareLeft returns the smallest free share of the requested resources.
func (r *room) shareLeft(what corev1.ResourceList) float64 {
	least := 1.0
	for name, q := range what {
		all, free := r.node.Status.Allocatable[name], r.free[name]
		if whole := all.AsApproximateFloat64(); q.Sign() > 0 && whole > 0 {
			least = min(least, (free.AsApproximateFloat64()-q.AsApproximateFloat64())/whole)
		}
	}
	return least
}

// refusalReason returns the reason why a pod with this placement cannot run on a node, or "" if it can. It
// ignores the free resources.
func refusalReason(n *corev1.Node, place remotecluster.Placement) string {
	if !isReady(n) {
		return "it is not Ready"
	}
	match, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: place.NodeSelector, Affinity: place.Affinity}}).Match(n)
	if err != nil || !match {
		return "the pod does not select it"
	}
	taints := n.Spec.Taints
	if n.Spec.Unschedulable {
		taints = append([]corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}, taints...)
	}
	repels := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	if taint, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), taints, place.Tolerations, repels, true); untolerated {
		return "the pod does not tolerate its taint " + taint.Key
	}
	return ""
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// fitNode returns the node that has the most free resources after the pod, like the default scheduler. If the pod
// fits on no node, fitNode returns the reasons.
func (all rooms) fitNode(what corev1.ResourceList, place remotecluster.Placement) (best *room, why string) {
	if len(all) == 0 {
		return nil, "it has no nodes"
	}
	reasons, short, most := map[string]int{}, map[corev1.ResourceName]int{}, corev1.ResourceList{}
	for _, r := range all {
		if reason := refusalReason(r.node, place); reason != "" {
			reasons[reason]++
			continue
		}
		for name := range what {
			if free, known := most[name]; !known || free.Cmp(r.free[name]) < 0 {
				most[name] = r.free[name]
			}
		}
		if lacks := r.lackingResource(what); lacks != "" {
			short[lacks]++
			continue
		}
		if best == nil || r.shareLeft(what) > best.shareLeft(what) {
			best = r
		}
	}
	if best != nil {
		return best, ""
	}
	for name, n := range short {
		wanted, free := what[name], most[name]
		if free.Sign() < 0 {
			free = resource.Quantity{}
		}
		reasons[fmt.Sprintf("too little %s: %s wanted, at most %s free", name, wanted.String(), free.String())] = n
	}
	return nil, countReasons(reasons, len(all))
}

// countReasons returns a text with the number of nodes for each reason.
func countReasons(reasons map[string]int, of int) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		out = append(out, fmt.Sprintf("%d of %d: %s", reasons[reason], of, reason))
	}
	return strings.Join(out, "; ")
}
