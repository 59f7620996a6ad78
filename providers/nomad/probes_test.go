// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// failing returns a probe whose command fails.
func failing() *corev1.Probe {
	return &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "[ -e /nothing ]"}}}}
}

// TestFailedLivenessRestartsTheTaskAlone checks that a failed liveness probe restarts only its task, also if the
// task ignores the signal to end. It ends a pod that is not to be restarted.
func TestFailedLivenessRestartsTheTaskAlone(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("liveness"), objects{})
	pod := shellPod("restarts", DriverExec, "trap '' TERM; while :; do sleep 0.1; done")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	other := *pod.Spec.Containers[0].DeepCopy()
	other.Name = "other"
	pod.Spec.Containers[0].LivenessProbe = failing()
	pod.Spec.Containers = append(pod.Spec.Containers, other)
	ends := shellPod("ends", DriverExec, forever)
	ends.Spec.Containers[0].LivenessProbe = failing()
	h.create(pod)
	h.create(ends)
	begin := time.Now()
	got := h.until(pod, "restarted", func(p *corev1.Pod) bool {
		s := service.StateOf(p, "main")
		return s != nil && s.RestartCount > 0 && s.State.Running != nil
	})
	if s := service.StateOf(got, "other"); s.RestartCount != 0 || s.State.Running == nil {
		t.Errorf("the other container is %+v", s)
	}
	if last := service.StateOf(got, "main").LastTerminationState.Terminated; last == nil || last.ExitCode != 137 {
		t.Errorf("the run before is %+v, want it to be killed", last)
	}
	if took := time.Since(begin); took > clientGrace {
		t.Errorf("it took %s, and the grace period is 1 s", took)
	}
	end := h.until(ends, "over", phase(corev1.PodFailed))
	if end.Status.Reason != service.ReasonUnhealthy || !strings.Contains(end.Status.Message, "Container main failed liveness probe") {
		t.Errorf("got %s: %s", end.Status.Reason, end.Status.Message)
	}
	h.remove(pod, ends)
}

// TestProbesAskTheAddressOfThePod checks that a pod is ready once it listens at its address.
func TestProbesAskTheAddressOfThePod(t *testing.T) {
	h := openHome(t, sharedAgent(t).config("asked"), objects{})
	opens, closed := shellPod("opens", DriverExec, echo), shellPod("closed", DriverExec, echo)
	for pod, port := range map[*corev1.Pod]int32{opens: 7000, closed: 7001} {
		pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
		h.create(pod)
	}
	is := func(p *corev1.Pod) bool { s := service.StateOf(p, "main"); return s != nil && s.Ready }
	h.until(closed, "running", phase(corev1.PodRunning))
	h.until(opens, "ready", is)
	if got, err := h.GetPod(t.Context(), closed.Namespace, closed.Name); err != nil || is(got) {
		t.Errorf("nobody listens, and it is %+v, %v", got, err)
	}
	h.remove(opens, closed)
}

// TestRestartThatIsNotAnsweredIsNotAskedAgain checks that a restart without an answer is not requested again: a
// second restart would end the new run.
func TestRestartThatIsNotAnsweredIsNotAskedAgain(t *testing.T) {
	d, p := openDouble(t, objects{})
	pod := shellPod("p", DriverExec, forever)
	of := service.Target[*instance]{Pod: pod, Container: "main", Instance: &instance{seen: seen{alloc: &nomadapi.Allocation{ID: "a"}}}}
	const restart, signal = "PUT /v1/client/allocation/a/restart", "PUT /v1/client/allocation/a/signal"
	d.set(func() { d.lose = restart })
	if err := p.d.Restart(t.Context(), of, ""); err == nil {
		t.Error("an answer that was lost is no error")
	}
	var asked []string
	d.set(func() {
		d.lose, d.instead = "", func(_ http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			if strings.HasSuffix(r.URL.Path, "/restart") {
				_, _ = io.Copy(io.Discard, r.Body) // until the body is read, the server does not notice that the client is gone
				d.mu.Unlock()                      // others are answered
				defer d.mu.Lock()
				<-r.Context().Done()
			}
		}
	})
	if err := p.d.Restart(t.Context(), of, ""); err != nil {
		t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := slices.DeleteFunc(slices.Clone(d.asked), func(s string) bool { return s != restart }); len(before) != 1 {
		t.Errorf("asked %q, want it once", before)
	}
	if !slices.Equal(asked, []string{restart, signal}) {
		t.Errorf("asked %q for a task that does not end within its grace period", asked)
	}
}

// TestProbesThatNobodyCanDoAreRefused checks that the refusal names the field of each probe.
func TestProbesThatNobodyCanDoAreRefused(t *testing.T) {
	asks := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
	for at, change := range map[string]func(*corev1.Pod, *Config){
		"spec.containers[0].readinessProbe: the pod has no address": func(p *corev1.Pod, c *Config) {
			c.Network, p.Spec.Containers[0].ReadinessProbe = NetworkHost, asks
		},
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds": func(p *corev1.Pod, _ *Config) {
			p.Spec.Containers[0].LivenessProbe = failing()
			p.Spec.Containers[0].LivenessProbe.TerminationGracePeriodSeconds = ptr.To[int64](1)
		},
		"spec.initContainers[0].startupProbe": func(p *corev1.Pod, _ *Config) {
			c := *p.Spec.Containers[0].DeepCopy()
			c.Name, c.StartupProbe, c.RestartPolicy = "init", failing(), ptr.To(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = []corev1.Container{c}
		},
		"": func(p *corev1.Pod, c *Config) {
			c.Network, p.Spec.HostNetwork, p.Spec.Containers[0].ReadinessProbe = NetworkHost, true, asks
		},
	} {
		pod, c := shellPod("p", DriverExec, forever), testConfig(t, func(*Config) {})
		change(pod, &c)
		err := mapping{config: c}.check(pod)
		if at == "" && err != nil || at != "" && (err == nil || !strings.Contains(err.Error(), at)) {
			t.Errorf("got %v, want %q", err, at)
		}
	}
}
