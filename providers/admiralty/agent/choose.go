// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// candidate is a target for the pods of one round.
type candidate struct {
	target *target
	node   *room  // the node of the target in this cluster
	rooms  rooms  // the free resources of the target's own nodes
	away   string // why the target accepts no pods; "" if it accepts pods
}

// newCandidates returns the targets with the free resources that the pods of the source cluster leave. A pod that
// exists in a target is counted on its node there, any other pod on the node that fits best. Targets in the same
// cluster share its free resources. bound maps nodes of the source cluster to their pods.
func newCandidates(targets []*target, node func(string) *corev1.Node, bound map[string][]*corev1.Pod) (all []*candidate) {
	clusters := map[string]*state{}
	for _, t := range targets {
		host := t.access.Host
		if clusters[host] == nil {
			clusters[host] = t.clusterState()
		}
		all = append(all, newCandidate(t, clusters[host], node(t.Node), bound[t.Node]))
	}
	return all
}

// newCandidate returns the candidate for a target whose cluster is in the given state.
func newCandidate(t *target, cluster *state, node *corev1.Node, bound []*corev1.Pod) *candidate {
	c := &candidate{target: t}
	switch {
	case node == nil:
		c.away = "there is no such node"
	case cluster.err != nil:
		c.away = cluster.err.Error()
	}
	if c.away != "" {
		return c
	}
	c.node, c.rooms = &room{node, node.Status.Allocatable.DeepCopy()}, cluster.rooms
	for _, pod := range bound {
		c.takePod(pod, cluster.there)
	}
	return c
}

// takePod subtracts the requests of a bound pod from the free resources.
func (c *candidate) takePod(pod *corev1.Pod, there map[types.UID]bool) {
	what := podNeeds(pod)
	c.node.takeRequests(what)
	if there[pod.UID] {
		return
	}
	place, err := c.podPlacement(pod)
	if err != nil {
		return // the provider refuses the pod
	}
	if r, _ := c.rooms.fitNode(what, place); r != nil {
		r.takeRequests(what)
	}
}

// podPlacement returns the placement of a pod in the target.
func (c *candidate) podPlacement(pod *corev1.Pod) (remotecluster.Placement, error) {
	return c.target.provider.PlacePod(pod)
}

// fitPod returns the share of resources that the pod would leave free on the best node of the target. If the pod
// fits on no node, fitPod returns the reason.
func (c *candidate) fitPod(pod *corev1.Pod) (left float64, why string) {
	if c.away != "" {
		return 0, c.away
	}
	if why := refusalReason(c.node.node, remotecluster.Placement{NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity, Tolerations: pod.Spec.Tolerations}); why != "" {
		return 0, "of the node here: " + why
	}
	what := podNeeds(pod)
	if lacks := c.node.lackingResource(what); lacks != "" {
		return 0, "the node here has too little " + string(lacks)
	}
	place, err := c.podPlacement(pod)
	if err != nil {
		return 0, err.Error()
	}
	best, why := c.rooms.fitNode(what, place)
	if best == nil {
		return 0, why
	}
	return best.shareLeft(what), ""
}

// chooseTarget returns the target that has the most free resources after the pod. If no target accepts the pod,
// chooseTarget returns the reasons.
func chooseTarget(candidates []*candidate, pod *corev1.Pod) (best *candidate, why string) {
	most := 0.0
	var reasons []string
	for _, c := range candidates {
		left, reason := c.fitPod(pod)
		switch {
		case reason != "":
			reasons = append(reasons, fmt.Sprintf("%s: %s", c.target.Node, reason))
		case best == nil || left > most:
			best, most = c, left
		}
	}
	if best != nil {
		return best, ""
	}
	return nil, fmt.Sprintf("0 of %d targets take the pod. %s", len(candidates), strings.Join(reasons, ". "))
}

// isWaiting reports whether the agent must bind a pod.
func isWaiting(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == SchedulerName && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0
}

// inOrder sorts pods in the order of binding: by priority, then by age.
func inOrder(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(schedulinghelper.PodPriority(b), schedulinghelper.PodPriority(a)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name),
		)
	})
}
