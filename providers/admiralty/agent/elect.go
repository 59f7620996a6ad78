// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// SchedulerName is the scheduler name of pods that the agent binds.
const SchedulerName = "virtual-kubelet-admiralty"

// Annotations of Admiralty that the webhook reads.
const (
	prefix               = "multicluster.admiralty.io/"
	annotationElect      = prefix + "elect"
	annotationNoReserve  = prefix + "no-reservation"
	annotationSpecIsHere = prefix + "use-constraints-from-spec-for-proxy-pod-scheduling"
	annotationProxy      = prefix + "proxy-pod-scheduling-constraints"
)

// Elect changes an elected pod so that it is scheduled to a target. Its node constraints then apply to nodes of
// the target. Elect is idempotent, and reports whether it changed the pod.
func Elect(pod *corev1.Pod) (changed bool, err error) {
	if _, elected := pod.Annotations[annotationElect]; !elected || pod.Spec.NodeName != "" || isElected(pod) {
		return false, nil
	}
	if _, has := pod.Annotations[annotationProxy]; has {
		return false, errdefs.InvalidInputf("annotation %s is not supported: use %s", annotationProxy, annotationSpecIsHere)
	}
	switch _, here := pod.Annotations[annotationSpecIsHere]; {
	case here:
		if err := onlyOfNodes(pod); err != nil {
			return false, err
		}
	case pod.Annotations[admiralty.AnnotationConstraints] != "" && ofTarget(pod):
		// Another webhook has undone a part of the changes, but the annotation already has the node constraints.
	default:
		if err := moveConstraints(pod); err != nil {
			return false, err
		}
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.NodeSelector[admiralty.LabelProvider] = admiralty.ProviderName
	if !slices.Contains(pod.Spec.Tolerations, ofTargets) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, ofTargets)
	}
	if _, unreserved := pod.Annotations[annotationNoReserve]; !unreserved {
		pod.Spec.SchedulerName = SchedulerName
	}
	return true, nil
}

// ofTargets is the toleration of the taint of target nodes.
var ofTargets = corev1.Toleration{
	Key: admiralty.LabelProvider, Operator: corev1.TolerationOpEqual, Value: admiralty.ProviderName, Effect: corev1.TaintEffectNoSchedule,
}

// isElected reports whether the webhook has already changed the pod. It checks more than the node selector,
// because users may set that, too.
func isElected(pod *corev1.Pod) bool {
	_, unreserved := pod.Annotations[annotationNoReserve]
	return pod.Spec.NodeSelector[admiralty.LabelProvider] == admiralty.ProviderName &&
		(pod.Spec.SchedulerName == SchedulerName || unreserved && slices.Contains(pod.Spec.Tolerations, ofTargets))
}

// ofTarget reports whether the pod has the node selector and toleration of target nodes.
func ofTarget(pod *corev1.Pod) bool {
	return pod.Spec.NodeSelector[admiralty.LabelProvider] == admiralty.ProviderName && slices.Contains(pod.Spec.Tolerations, ofTargets)
}

// onlyOfNodes returns an error for constraints that kube-scheduler supports, but the agent does not.
func onlyOfNodes(pod *corev1.Pod) error {
	if _, unreserved := pod.Annotations[annotationNoReserve]; unreserved {
		return nil
	}
	refused := ""
	if slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable != corev1.ScheduleAnyway }) {
		refused = "spec.topologySpreadConstraints"
	}
	if a := pod.Spec.Affinity; a != nil {
		switch {
		case a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
			refused = "spec.affinity.podAffinity"
		case a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
			refused = "spec.affinity.podAntiAffinity"
		}
	}
	if refused != "" {
		return errdefs.InvalidInputf("%s: the agent binds by room, and does not look at other pods of nodes here: leave it out, or set the annotation %s so that kube-scheduler does", refused, annotationNoReserve)
	}
	return nil
}

// moveConstraints moves the node constraints of a pod into its annotation.
func moveConstraints(pod *corev1.Pod) error {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return errdefs.InvalidInputf("spec.topologySpreadConstraints: it is not taken to the target cluster: leave it out, or set the annotation %s", annotationSpecIsHere)
	}
	if delete(pod.Spec.NodeSelector, admiralty.LabelProvider); len(pod.Spec.NodeSelector) == 0 { // the label is for nodes of this cluster
		pod.Spec.NodeSelector = nil
	}
	own := remotecluster.Placement{NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity}
	var ofHere []corev1.Toleration
	for _, t := range pod.Spec.Tolerations {
		// Keep both: admission adds the first kind to every pod, and the other one is for nodes of this cluster.
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == admiralty.LabelProvider {
			ofHere = append(ofHere, t)
		} else {
			own.Tolerations = append(own.Tolerations, t)
		}
	}
	pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.Tolerations = nil, nil, ofHere
	text, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("write what the pod says of nodes: %w", err)
	}
	if string(text) == "{}" {
		return nil
	}
	pod.Annotations[admiralty.AnnotationConstraints] = string(text)
	return nil
}
