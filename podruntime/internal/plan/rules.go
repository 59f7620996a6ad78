// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// Sidecar reports whether an init container is restartable: it runs concurrently with the main containers.
func Sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// ordinaryContainers ranges over the init and main containers of a pod.
func ordinaryContainers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// containerNamed returns the container with that name, or nil.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for c := range ordinaryContainers(pod) {
		if c.Name == name {
			return c
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); c.Name == name {
			return c
		}
	}
	return nil
}

func isEphemeral(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

// restartsAll reports whether an exit of the container with that code restarts all containers of the pod.
func restartsAll(c *corev1.Container, code int32) bool {
	rule := podstatus.Rule(c, code)
	return rule != nil && rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
}

// MayRestartAll reports whether the pod has a rule that restarts every container.
func MayRestartAll(pod *corev1.Pod) bool {
	for c := range ordinaryContainers(pod) {
		if slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		}) {
			return true
		}
	}
	return false
}

// restartsKilled reports whether a container starts again after a failed probe killed it. Its restart rules are about exit codes, so they do not
// apply.
func restartsKilled(pod *corev1.Pod, c *corev1.Container) bool {
	if c.RestartPolicy != nil {
		return *c.RestartPolicy != corev1.ContainerRestartPolicyNever
	}
	return pod.Spec.RestartPolicy != corev1.RestartPolicyNever
}

// podGrace returns the grace period of a pod that ends without a deletion.
func podGrace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return minGrace
}

// probeGrace returns the grace period after a failed probe.
func probeGrace(pod *corev1.Pod, probe *corev1.Probe) time.Duration {
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return time.Duration(*probe.TerminationGracePeriodSeconds) * time.Second
	}
	return podGrace(pod)
}

// podDeadline returns the deadline of a pod (activeDeadlineSeconds), or false if it has none.
func podDeadline(pod *corev1.Pod, mem *Memory) (time.Time, bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || mem.StartTime.IsZero() {
		return time.Time{}, false
	}
	return mem.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second), true
}

// hasID reports whether a container ID of a status belongs to the instance.
func hasID(containerID, id string) bool {
	_, after, found := strings.Cut(containerID, "://")
	return found && after == id
}
