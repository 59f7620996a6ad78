// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"slices"
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
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1, SuccessThreshold: 1, ProbeHandler: corev1.ProbeHandler{
		Exec: &corev1.ExecAction{Command: append([]string{"program"}, program.Program{Need: []string{"/tmp/nothing"}}.Args()...)},
	}}
}

// opens returns a TCP probe of a port, and speaks a gRPC probe.
func opens(port int32) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
}

func speaks() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80}}}
}

// TestFailedStartupRestartsTheGroup checks that the pod goes on with one more restart, also while its container
// waits.
func TestFailedStartupRestartsTheGroup(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "again", stays())
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers[0].StartupProbe = fails()
	h.Create(p, pod)
	id, err := h.region.group(pod)
	if err != nil {
		t.Fatal(err)
	}
	h.Until("the container to be restarted", func() (bool, string) {
		got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		s := service.StateOf(got, "main")
		return s != nil && s.RestartCount > 0 && s.State.Running != nil && s.LastTerminationState.Terminated != nil, string(got.Status.Phase)
	})
	begun := false
	for _, r := range h.ReportsOf(pod.UID) {
		begun = begun || r.Status.Phase == corev1.PodRunning
		if begun && r.Status.Phase != corev1.PodRunning {
			t.Errorf("a pod that is restarted is %s", r.Status.Phase)
		}
	}
	if now, err := h.region.group(pod); err != nil || now != id || h.region.instances(pod) != 1 {
		t.Errorf("its group is %s, %v, and was %s; %d of its containers run", now, err, id, h.region.instances(pod))
	}
}

// TestStartupProbeLetsASlowProgramStart checks that a slow container is neither started nor ready until its
// startup probe passes, and is not restarted before.
func TestStartupProbeLetsASlowProgramStart(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "slow", stays())
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	probe := fails()
	probe.FailureThreshold = 1000
	probe.Exec.Command = append([]string{"program"}, program.Program{Need: []string{"/tmp/started"}}.Args()...)
	pod.Spec.Containers[0].StartupProbe = probe
	h.Create(p, pod)
	if s := service.StateOf(h.UntilRuns(p, pod), "main"); s.Ready || s.Started == nil || *s.Started {
		t.Errorf("a container that has not started is %+v", s)
	}
	command := append([]string{"program"}, program.Program{Write: []string{"/tmp/started"}}.Args()...)
	if err := p.RunInContainer(t.Context(), pod.Namespace, pod.Name, "main", command, &caller{}); err != nil {
		t.Fatal(err)
	}
	h.Until("the container to be ready", func() (bool, string) {
		got, err := p.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		s := service.StateOf(got, "main")
		return s.Ready && *s.Started && s.RestartCount == 0, ""
	})
}

// TestProbesThatNobodyCanDoAreRefused checks that the refusal names the field of each probe.
func TestProbesThatNobodyCanDoAreRefused(t *testing.T) {
	t.Parallel()
	const at = "spec.containers[0]."
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	twice := func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"}) }
	for _, c := range []struct {
		name, wants string
		config      Config
		change      func(p *corev1.Pod, c *corev1.Container)
	}{
		{"startup that is not restarted", at + "startupProbe: this node does it, and ECI has no operation", Config{}, func(p *corev1.Pod, c *corev1.Container) { never(p); c.StartupProbe = fails() }},
		{"liveness that is not restarted", at + "livenessProbe: this node does it, and ECI has no operation", Config{}, func(p *corev1.Pod, c *corev1.Container) { never(p); c.LivenessProbe = speaks() }},
		{"liveness of ECI that is not restarted", "", Config{}, func(p *corev1.Pod, c *corev1.Container) { never(p); c.LivenessProbe = opens(80) }},
		{"readiness that is not restarted", "", Config{}, func(p *corev1.Pod, c *corev1.Container) { never(p); c.ReadinessProbe = speaks() }},
		{"a restart of one of two", at + "startupProbe: this node does it, and ECI restarts", Config{}, func(p *corev1.Pod, c *corev1.Container) { c.StartupProbe = fails(); twice(p) }},
		{"liveness of ECI of one of two", "", Config{}, func(p *corev1.Pod, c *corev1.Container) { c.LivenessProbe = fails(); twice(p) }},
		{"readiness of one of two", "", Config{}, func(p *corev1.Pod, c *corev1.Container) { c.ReadinessProbe = speaks(); twice(p) }},
		{"not reached", at + "readinessProbe: this node does it, and does not reach pods", Config{Reachable: new(false)}, func(_ *corev1.Pod, c *corev1.Container) { c.ReadinessProbe = speaks() }},
		{"not reached, by ECI", "", Config{Reachable: new(false)}, func(_ *corev1.Pod, c *corev1.Container) { c.ReadinessProbe, c.LivenessProbe = opens(80), opens(80) }},
		{"not reached, by exec", "", Config{Reachable: new(false)}, func(_ *corev1.Pod, c *corev1.Container) { c.StartupProbe = fails() }},
		{"a port without a number", at + "startupProbe.tcpSocket.port", Config{}, func(_ *corev1.Pod, c *corev1.Container) {
			c.StartupProbe = opens(0)
			c.StartupProbe.TCPSocket.Port = intstr.FromString("no")
		}},
		{"a time to end", at + "livenessProbe.terminationGracePeriodSeconds", Config{}, func(_ *corev1.Pod, c *corev1.Container) {
			c.LivenessProbe = opens(80)
			c.LivenessProbe.TerminationGracePeriodSeconds = new(int64(1))
		}},
	} {
		pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}})
		c.change(pod, &pod.Spec.Containers[0])
		_, _, err := c.config.probes(pod, &pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0))
		if c.wants == "" && err != nil || c.wants != "" && (!errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), c.wants)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.wants)
		}
	}
}

// TestAProbeIsDoneOnce checks that ECI does a probe if it can, and otherwise this node.
func TestAProbeIsDoneOnce(t *testing.T) {
	t.Parallel()
	withHeader := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80), HTTPHeaders: []corev1.HTTPHeader{{Name: "Host", Value: "a"}}}}}
	twice := fails()
	twice.SuccessThreshold = 2
	for _, c := range []struct {
		name                         string
		startup, liveness, readiness *corev1.Probe
		ours                         string
	}{
		{"what ECI has", nil, fails(), opens(80), ""},
		{"startup", fails(), fails(), fails(), "startup liveness"},
		{"gRPC", nil, speaks(), speaks(), "liveness readiness"},
		{"headers", nil, withHeader, withHeader, "liveness readiness"},
		{"more than one success", nil, nil, twice, "readiness"},
	} {
		pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", StartupProbe: c.startup, LivenessProbe: c.liveness, ReadinessProbe: c.readiness}}})
		lacks := lacking(&pod.Spec.Containers[0])
		sent, err := send(t, testMapping().config, pod, "Container.1.LivenessProbe", "Container.1.ReadinessProbe")
		if err != nil {
			t.Fatal(err)
		}
		var ours []string
		for _, k := range []struct {
			name        string
			asked, lack *corev1.Probe
		}{{"startup", c.startup, lacks.Startup}, {"liveness", c.liveness, lacks.Liveness}, {"readiness", c.readiness, lacks.Readiness}} {
			theirs := strings.Contains(strings.ToLower(sent), "."+k.name+"probe.")
			if k.lack != nil {
				ours = append(ours, k.name)
			}
			if (k.lack != nil) == theirs && k.asked != nil {
				t.Errorf("%s: %s is done by this node: %t, and by ECI: %t", c.name, k.name, k.lack != nil, theirs)
			}
		}
		if !slices.Equal(ours, strings.Fields(c.ours)) {
			t.Errorf("%s: this node does %q, want %q", c.name, ours, c.ours)
		}
	}
}
