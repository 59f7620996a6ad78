// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// RestartsAfter reports whether a container starts again after an exit code. Its own rules apply first, then its own policy, then the
// policy of the pod. See the restartPolicy of containers in the API.
func RestartsAfter(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	if c.RestartPolicy != nil {
		if rule := Rule(c, code); rule != nil && (rule.Action == corev1.ContainerRestartRuleActionRestart || rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers) {
			return true
		}
		switch *c.RestartPolicy {
		case corev1.ContainerRestartPolicyAlways:
			return true
		case corev1.ContainerRestartPolicyOnFailure:
			return code != 0
		case corev1.ContainerRestartPolicyNever:
			return false
		}
	}
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	}
	return true
}

// Rule returns the first of the container's restartPolicyRules for an exit code, or nil.
func Rule(c *corev1.Container, code int32) *corev1.ContainerRestartRule {
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		if rule.ExitCodes == nil {
			continue
		}
		switch in := slices.Contains(rule.ExitCodes.Values, code); rule.ExitCodes.Operator {
		case corev1.ContainerRestartRuleOnExitCodesOpIn:
			if in {
				return rule
			}
		case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
			if !in {
				return rule
			}
		}
	}
	return nil
}
