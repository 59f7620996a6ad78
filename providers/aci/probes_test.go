// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// fails returns a probe whose command fails.
func fails() *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: append([]string{"program"}, program.Program{Need: []string{"/tmp/nothing"}}.Args()...)},
	}}
}

// asks returns a TCP probe of a port.
func asks(port int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
}

// TestFailedStartupRestartsTheGroup checks that a failed startup probe restarts the group, or stops it if the
// pod is not to be restarted.
func TestFailedStartupRestartsTheGroup(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	again, ends := programPod("again", stays), programPod("ends", stays)
	again.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	other := *ends.Spec.Containers[0].DeepCopy()
	other.Name = "other"
	ends.Spec.Containers = append(ends.Spec.Containers, other)
	for _, pod := range []*corev1.Pod{again, ends} {
		pod.Spec.Containers[0].StartupProbe = fails()
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	id := a.id(p.driver.groups.owner, again)
	until(t, "the container to be restarted", func() bool {
		pod, err := p.GetPod(t.Context(), "ns", again.Name)
		if err != nil || pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
			t.Fatalf("the pod that is restarted is %+v, %v", pod, err)
		}
		s := service.StateOf(pod, "main")
		return s != nil && s.RestartCount > 0 && s.State.Running != nil
	})
	if now := a.id(p.driver.groups.owner, again); now == id || a.cloud.Instances(id) != 0 {
		t.Errorf("its group is %s, as before, or %d of those before run", now, a.cloud.Instances(id))
	}
	until(t, "the other pod to end", func() bool {
		pod, err := p.GetPod(t.Context(), "ns", ends.Name)
		return err == nil && pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == service.ReasonUnhealthy && strings.Contains(pod.Status.Message, "Container main failed startup probe")
	})
	if n := a.cloud.Instances(a.id(p.driver.groups.owner, ends)); n != 0 {
		t.Errorf("%d of the group that is stopped run", n)
	}
	for _, pod := range []*corev1.Pod{again, ends} {
		if err := p.DeletePod(t.Context(), pod); err != nil {
			t.Error(err)
		}
	}
	until(t, "both to be gone", func() bool { all, err := p.GetPods(t.Context()); return err == nil && len(all) == 0 })
}

// TestProbesThatNobodyCanDoAreRefused checks that the refusal names the field of each probe.
func TestProbesThatNobodyCanDoAreRefused(t *testing.T) {
	twice := func(p *corev1.Pod) *corev1.Container {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other", Image: "i"})
		return &p.Spec.Containers[0]
	}
	const at = "spec.containers[0]."
	for _, c := range []struct {
		name, wants string
		network     Network
		change      func(p *corev1.Pod, c *corev1.Container)
	}{
		{"a restart of one of two", at + "startupProbe: this node does it", Network{Subnet: "s"}, func(p *corev1.Pod, _ *corev1.Container) {
			c := twice(p)
			p.Spec.RestartPolicy, c.StartupProbe = corev1.RestartPolicyAlways, fails()
		}},
		{"one of two that ends all", "", Network{Subnet: "s"}, func(p *corev1.Pod, _ *corev1.Container) { twice(p).StartupProbe = fails() }},
		{"one of two that ACI restarts", "", Network{}, func(p *corev1.Pod, _ *corev1.Container) {
			c := twice(p)
			p.Spec.RestartPolicy, c.LivenessProbe = corev1.RestartPolicyAlways, fails()
		}},
		{"readiness of one of two", "", Network{Subnet: "s"}, func(p *corev1.Pod, _ *corev1.Container) {
			c := twice(p)
			p.Spec.RestartPolicy, c.ReadinessProbe = corev1.RestartPolicyAlways, asks(80)
		}},
		{"no address", at + "livenessProbe.tcpSocket: this node does it, and its pods have no address", Network{}, func(_ *corev1.Pod, c *corev1.Container) { c.LivenessProbe = asks(80) }},
		{"not reached", at + "readinessProbe.tcpSocket: this node does it, and does not reach pods", Network{Subnet: "s", Reachable: new(false)}, func(_ *corev1.Pod, c *corev1.Container) { c.ReadinessProbe = asks(80) }},
		{"not public", at + "readinessProbe.tcpSocket: this node does it at the public address", Network{Public: new(true)}, func(_ *corev1.Pod, c *corev1.Container) { c.ReadinessProbe = asks(80) }},
		{"public", "", Network{Public: new(true)}, func(_ *corev1.Pod, c *corev1.Container) {
			c.Ports, c.ReadinessProbe = []corev1.ContainerPort{{ContainerPort: 80}}, asks(80)
		}},
	} {
		pod := programPod("p", stays)
		c.change(pod, &pod.Spec.Containers[0])
		err := c.network.checkProbes(pod, &pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0))
		if c.wants == "" && err != nil || c.wants != "" && (!errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), c.wants)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.wants)
		}
	}
}

// TestAProbeIsDoneOnce checks that ACI does a probe if it can, and otherwise this node.
func TestAProbeIsDoneOnce(t *testing.T) {
	of := corev1.Container{LivenessProbe: fails(), ReadinessProbe: fails()}
	if lacks := lacking(&of); lacks != (service.Probes{}) {
		t.Errorf("this node does %+v, which ACI has", lacks)
	}
	of.StartupProbe = fails()
	if lacks := lacking(&of); lacks != (service.Probes{Startup: of.StartupProbe, Liveness: of.LivenessProbe}) {
		t.Errorf("beside a startup probe, this node does %+v", lacks)
	}
	r := whole()
	r.Containers["main"].StartupProbe = fails()
	group, err := testMapping(t).group(r)
	if err != nil || group.Properties.Containers[0].Properties.LivenessProbe != nil || group.Properties.Containers[0].Properties.ReadinessProbe == nil {
		t.Errorf("ACI gets %+v, %v: want readiness alone", group, err)
	}
}
