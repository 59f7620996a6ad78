// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions returns the conditions of the pod: the conditions that the provider reports or a kubelet derives, and unchanged conditions of
// other writers.
func conditions(v View, s *corev1.PodStatus) []corev1.PodCondition {
	out := slices.Clone(v.API.Status.Conditions)
	set := func(c corev1.PodCondition) { out = upsert(out, c, s.ObservedGeneration, v) }

	var reported []corev1.PodCondition
	if v.Report != nil {
		reported = v.Report.Conditions
	}
	for i, c := range reported {
		if condition(reported[i+1:], c.Type) != nil {
			continue // reported twice: the last one wins
		}
		switch c.Type {
		case corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized:
			continue // set below
		case corev1.PodScheduled:
			if condition(out, c.Type) != nil {
				continue // owned by the scheduler
			}
		}
		if gate := condition(out, c.Type); gate != nil && isGate(v.API, c.Type) && !c.LastTransitionTime.After(gate.LastTransitionTime.Time) {
			continue // the provider only has a copy, and the condition's own writer may have changed it since
		}
		set(c)
	}
	if condition(out, corev1.PodScheduled) == nil {
		set(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	}
	if c, known := initialized(v.API, s, reported); known {
		set(c)
	}
	if c, known := containersReady(v.API, s, reported); known {
		set(c)
		set(podReady(v.API, s, reported, out, c))
	}
	if v.Infeasible != "" && !Terminal(s) {
		set(corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: v.Infeasible})
	}
	if v.Failure.isDisruption() && Terminal(s) && !Terminal(&v.API.Status) {
		set(disruption(v.Failure))
	}
	return out
}

// upsert puts c into list. The transition time changes only with the status.
func upsert(list []corev1.PodCondition, c corev1.PodCondition, generation int64, v View) []corev1.PodCondition {
	c.LastProbeTime = metav1.Time{}
	if generation > 0 {
		c.ObservedGeneration = generation
	}
	old := condition(list, c.Type)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
		c.LastProbeTime = old.LastProbeTime
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.Time{Time: v.Now}
	}
	if old != nil {
		*old = c
		return list
	}
	return append(list, c)
}

func condition(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

func isGate(pod *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == t })
}

// initialized returns the provider's condition, or derives the condition from the statuses of the init
// containers.
func initialized(pod *corev1.Pod, s *corev1.PodStatus, reported []corev1.PodCondition) (corev1.PodCondition, bool) {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if r := condition(reported, c.Type); r != nil {
		return *r, true
	}
	if s.Phase == corev1.PodSucceeded {
		c.Reason = "PodCompleted"
		return c, true
	}
	var waiting []string
	for _, ic := range pod.Spec.InitContainers {
		i := slices.IndexFunc(s.InitContainerStatuses, func(st corev1.ContainerStatus) bool { return st.Name == ic.Name })
		if i < 0 || !initDone(&ic, &s.InitContainerStatuses[i]) {
			waiting = append(waiting, ic.Name)
		}
	}
	if len(waiting) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		c.Message = fmt.Sprintf("init containers not done: %s", strings.Join(waiting, ", "))
	}
	return c, len(s.ContainerStatuses) > 0 || len(reported) > 0
}

func initDone(c *corev1.Container, st *corev1.ContainerStatus) bool {
	switch {
	case c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways:
		return st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
	case st.Started != nil:
		return *st.Started || endUnknown(st)
	}
	return st.State.Running != nil || endUnknown(st)
}

// containersReady returns the provider's condition. Without one, it derives the condition from the reported container statuses, or from the
// reported condition Ready of the pod. known is false if the provider reports none of these.
func containersReady(pod *corev1.Pod, s *corev1.PodStatus, reported []corev1.PodCondition) (c corev1.PodCondition, known bool) {
	c = corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	switch s.Phase {
	case corev1.PodSucceeded:
		c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
		return c, true
	case corev1.PodFailed:
		c.Status, c.Reason = corev1.ConditionFalse, "PodFailed"
		return c, true
	}
	if r := condition(reported, corev1.ContainersReady); r != nil && !outlived(r, pod, s) {
		return *r, true
	}
	if len(s.ContainerStatuses) > 0 {
		if unready := unreadyContainers(pod, s); len(unready) > 0 {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
			c.Message = fmt.Sprintf("containers not ready: %s", strings.Join(unready, ", "))
		}
		return c, true
	}
	if r := condition(reported, corev1.PodReady); r != nil {
		c.Status, c.Reason, c.Message = r.Status, r.Reason, r.Message
		return c, true
	}
	return corev1.PodCondition{}, false
}

// outlived reports whether the condition claims that the pod is ready although a container in the status has terminated.
func outlived(ready *corev1.PodCondition, pod *corev1.Pod, s *corev1.PodStatus) bool {
	return ready.Status == corev1.ConditionTrue && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		st := statusNamed(s.ContainerStatuses, c.Name)
		return st != nil && st.State.Terminated != nil
	})
}

func unreadyContainers(pod *corev1.Pod, s *corev1.PodStatus) (names []string) {
	for _, c := range pod.Spec.Containers {
		if !slices.ContainsFunc(s.ContainerStatuses, func(st corev1.ContainerStatus) bool { return st.Name == c.Name && st.Ready }) {
			names = append(names, c.Name)
		}
	}
	return names
}

// podReady returns the provider's condition, or derives the condition from the containers. The condition is False while a readiness gate is
// not True in the list all.
func podReady(pod *corev1.Pod, s *corev1.PodStatus, reported, all []corev1.PodCondition, containers corev1.PodCondition) corev1.PodCondition {
	c := containers
	c.Type, c.LastTransitionTime = corev1.PodReady, metav1.Time{}
	if r := condition(reported, corev1.PodReady); r != nil && !Terminal(s) && !outlived(r, pod, s) {
		c = *r
	}
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var unmet []string
	for _, gate := range pod.Spec.ReadinessGates {
		g := condition(all, gate.ConditionType)
		switch {
		case g == nil:
			unmet = append(unmet, fmt.Sprintf("readiness gate %q has no condition", gate.ConditionType))
		case g.Status != corev1.ConditionTrue:
			unmet = append(unmet, fmt.Sprintf("readiness gate %q is %s", gate.ConditionType, g.Status))
		}
	}
	if len(unmet) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", strings.Join(unmet, ", ")
		c.LastTransitionTime = metav1.Time{}
	}
	return c
}
