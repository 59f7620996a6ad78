// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A container of a pod that never restarts runs again if another container has a rule that restarts all.
func TestARuleThatRestartsAllMakesNoContainerFinal(t *testing.T) {
	ended := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}}}
	again := []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	own := corev1.ContainerRestartPolicyNever
	for action, runs := range map[corev1.ContainerRestartRuleAction]bool{
		corev1.ContainerRestartRuleActionRestart:              false,
		corev1.ContainerRestartRuleActionRestartAllContainers: true,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{
				{Name: "main"},
				{Name: "source", RestartPolicy: &own, RestartPolicyRules: []corev1.ContainerRestartRule{{Action: action}}},
			},
		}}
		got := mergeContainers(ended, again, false, byPolicy(pod))
		if (got[0].State.Running != nil) != runs {
			t.Errorf("a rule %s of another container: got %+v, want it to run: %t", action, got[0].State, runs)
		}
	}
}
