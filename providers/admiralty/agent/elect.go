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

// Elect changes an elected pod so that it goes to a target. From then on, the node constraints of the pod are
// about nodes of the target. A second call changes nothing. Elect reports whether it changed the pod.
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
		// Another webhook undid the rest: the annotation already has the node constraints of the pod.
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

// ofTargets is the toleration of the taint on nodes of targets.
var ofTargets = corev1.Toleration{
	Key: admiralty.LabelProvider, Operator: corev1.TolerationOpEqual, Value: admiralty.ProviderName, Effect: corev1.TaintEffectNoSchedule,
}

// isElected reports whether the webhook has processed the pod before. The label alone is no proof, because users may
// select it.
func isElected(pod *corev1.Pod) bool {
	_, unreserved := pod.Annotations[annotationNoReserve]
	return pod.Spec.NodeSelector[admiralty.LabelProvider] == admiralty.ProviderName &&
		(pod.Spec.SchedulerName == SchedulerName || unreserved && slices.Contains(pod.Spec.Tolerations, ofTargets))
}

// ofTarget reports whether the pod has the node selector and the toleration that the webhook sets.
func ofTarget(pod *corev1.Pod) bool {
	return pod.Spec.NodeSelector[admiralty.LabelProvider] == admiralty.ProviderName && slices.Contains(pod.Spec.Tolerations, ofTargets)
}

// onlyOfNodes refuses constraints that the agent ignores when it binds a pod to a node here. Kube-scheduler
// honours them.
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
	if delete(pod.Spec.NodeSelector, admiralty.LabelProvider); len(pod.Spec.NodeSelector) == 0 { // the label selects nodes of this cluster
		pod.Spec.NodeSelector = nil
	}
	own := remotecluster.Placement{NodeSelector: pod.Spec.NodeSelector, Affinity: pod.Spec.Affinity}
	var ofHere []corev1.Toleration
	for _, t := range pod.Spec.Tolerations {
		// The API server gives the first kind to every pod. The other toleration is about nodes here, like the
		// label.
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
