// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Transition is how long a condition stays after its last cause.
const Transition = 5 * time.Minute

// Pressure has the true conditions of a node. The zero value has none.
type Pressure struct {
	last map[corev1.NodeConditionType]time.Time // time of the last cause
}

// Update records the met thresholds, and reports whether the conditions have changed.
func (p *Pressure) Update(met []Met, now time.Time) (changed bool) {
	before := p.Conditions()
	if p.last == nil {
		p.last = map[corev1.NodeConditionType]time.Time{}
	}
	for _, m := range met {
		p.last[m.Signal.Condition()] = now
	}
	maps.DeleteFunc(p.last, func(_ corev1.NodeConditionType, at time.Time) bool { return now.Sub(at) >= Transition })
	return !slices.Equal(before, p.Conditions())
}

// Conditions returns the true conditions, sorted.
func (p *Pressure) Conditions() []corev1.NodeConditionType {
	return slices.Sorted(maps.Keys(p.last))
}

// Refuse returns the reason why a pod must not begin under the conditions, or "" if it may begin. Memory
// pressure refuses pods without requests, any other pressure all but critical pods.
func Refuse(pod *corev1.Pod, conditions []corev1.NodeConditionType) string {
	if len(conditions) == 0 || (Pod{Pod: pod}).podPriority() >= Critical {
		return ""
	}
	if slices.Equal(conditions, []corev1.NodeConditionType{corev1.NodeMemoryPressure}) && (!bestEffort(pod) || toleratesTaint(pod, corev1.TaintNodeMemoryPressure)) {
		return ""
	}
	return fmt.Sprintf("The node had condition: %v. ", conditions)
}

// bestEffort reports whether a pod requests neither CPU nor memory.
func bestEffort(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, amounts := range []corev1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				if !amounts.Cpu().IsZero() || !amounts.Memory().IsZero() {
					return false
				}
			}
		}
	}
	return true
}

func toleratesTaint(pod *corev1.Pod, key string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == key || t.Key == "" && t.Operator == corev1.TolerationOpExists) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}
