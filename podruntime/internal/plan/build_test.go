// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// part adds something to a pod.
type part func(*corev1.Pod)

func newPod(policy corev1.RestartPolicy, parts ...part) *corev1.Pod {
	grace := int64(30)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec:       corev1.PodSpec{RestartPolicy: policy, TerminationGracePeriodSeconds: &grace},
	}
	for _, add := range parts {
		add(pod)
	}
	return pod
}

func container(name string, edit []func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name, Image: "image"}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func mainOne(name string, edit ...func(*corev1.Container)) part {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container(name, edit)) }
}

func initOne(name string, edit ...func(*corev1.Container)) part {
	return func(p *corev1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, container(name, edit)) }
}

func sidecar(name string, edit ...func(*corev1.Container)) part {
	return initOne(name, append(edit, own(corev1.ContainerRestartPolicyAlways))...)
}

func ephemeral(name string) part {
	return func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "image"},
		})
	}
}

func own(policy corev1.ContainerRestartPolicy) func(*corev1.Container) {
	return func(c *corev1.Container) { c.RestartPolicy = &policy }
}

func startupProbe(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} }

func livenessProbe(grace int64) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.LivenessProbe = &corev1.Probe{}
		if grace > 0 {
			c.LivenessProbe.TerminationGracePeriodSeconds = &grace
		}
	}
}

func preStop(c *corev1.Container) {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PreStop = &corev1.LifecycleHandler{}
}

func postStart(c *corev1.Container) {
	if c.Lifecycle == nil {
		c.Lifecycle = &corev1.Lifecycle{}
	}
	c.Lifecycle.PostStart = &corev1.LifecycleHandler{}
}

func rule(action corev1.ContainerRestartRuleAction, op corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.RestartPolicyRules = append(c.RestartPolicyRules, corev1.ContainerRestartRule{
			Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
		})
	}
}
