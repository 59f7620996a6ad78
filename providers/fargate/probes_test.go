// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestFailedLivenessEndsTheTask checks the reason of the end for a command that fails, a command that hangs, and
// a port without a listener.
func TestFailedLivenessEndsTheTask(t *testing.T) {
	c := cloudOf(t)
	p := open(t, c)
	command := func(of program.Program) *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, FailureThreshold: 2, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: append([]string{"program"}, of.Args()...)},
		}}
	}
	for name, probe := range map[string]*corev1.Probe{
		"fails": command(program.Program{Need: []string{"/tmp/alive"}}), "hangs": command(program.Program{Stay: program.Forever}), "closed": asksPort(silent(t)),
	} {
		pod := podOf(name, program.Program{Stay: program.Forever})
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
		pod.Spec.Containers[0].LivenessProbe = probe
		if err := p.kit.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{"fails": "Container main failed liveness probe", "hangs": "command timed out", "closed": "connection refused"} {
		end := until(t, p, name, "over", isOver)
		if end.Status.Phase != corev1.PodFailed || end.Status.Reason != "Unhealthy" || !strings.Contains(end.Status.Message, says) {
			t.Errorf("%s: got %s, %s: %s, want %q", name, end.Status.Phase, end.Status.Reason, end.Status.Message, says)
		}
	}
}

// TestUnreachablePodIsNotAskedByNetwork checks that a node that cannot reach pods does not probe ports, which
// would end healthy pods. It runs the commands of probes nevertheless.
func TestUnreachablePodIsNotAskedByNetwork(t *testing.T) {
	port, command := asksPort(1), &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	for reachable, want := range map[bool]service.Probes{
		true: {Startup: port, Liveness: port, Readiness: port}, false: {},
	} {
		d := &driver{config: Config{Reachable: &reachable}}
		if got := d.Lacking(nil, &corev1.Container{StartupProbe: port, LivenessProbe: port, ReadinessProbe: port}); got != want {
			t.Errorf("reachable %t, probes of ports: got %+v, want %+v", reachable, got, want)
		}
		if got, want := d.Lacking(nil, &corev1.Container{StartupProbe: command, LivenessProbe: command, ReadinessProbe: command}), (service.Probes{Startup: command, Liveness: command}); got != want {
			t.Errorf("reachable %t, commands: got %+v, want %+v", reachable, got, want)
		}
	}
}
