// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// execProbe checks once a second whether a file exists.
func (c *C) execProbe(need ...string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: c.execCommand(program.Program{Need: need})}},
		PeriodSeconds: 1, TimeoutSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1,
	}
}

// isReady reports whether the node shows a pod as Ready: by the provider's condition, and without it by the
// containers.
func isReady(p *corev1.Pod) bool {
	if word := conditionStatus(p, corev1.PodReady); word != corev1.ConditionUnknown {
		return word == corev1.ConditionTrue
	}
	return isRunning(p) && !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready })
}

var probes = []Check{
	{
		Name: "probes/none", Why: "a container without probes is ready as soon as it runs",
		Run: func(c *C) {
			pod := c.newPod("none", stayingProgram())
			c.startPod(pod)
			p := c.untilPod(pod, "to be Ready", isReady)
			if !c.statusOf(p, "main").Ready {
				c.Errorf("the pod is Ready and its container is not: %s", describePod(p))
			}
		},
	},
	{
		Name: "probes/readiness", Why: "a pod that is not ready gets no traffic",
		Needs: []capability.Feature{capability.ExecProbes},
		Run: func(c *C) {
			pod := c.newPod("readiness", stayingProgram())
			pod.Spec.Containers[0].ReadinessProbe = c.execProbe("/tmp/ready")
			if p := c.startPod(pod); isReady(p) || c.statusOf(p, "main").Ready {
				c.Errorf("the probe fails, and the pod is Ready: %s", describePod(p))
			}
			c.runExec(pod, "main", program.Program{Write: []string{"/tmp/ready"}})
			c.untilPod(pod, "to be Ready once its probe passes", isReady)
		},
	},
	{
		Name: "probes/liveness", Why: "a program that hangs is restarted",
		Needs: []capability.Feature{capability.ExecProbes},
		Run: func(c *C) {
			pod := c.newPod("liveness", stayingProgram())
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			pod.Spec.Containers[0].LivenessProbe = c.execProbe("/tmp/alive")
			c.untilRestarted(pod)
		},
	},
	{
		Name: "probes/liveness-ends", Why: "a program that hangs and is not to be started again must not run for ever",
		Needs: []capability.Feature{capability.RunToCompletion, capability.ExecProbes},
		Run: func(c *C) {
			pod := c.newPod("liveness-ends", stayingProgram())
			pod.Spec.RestartPolicy = corev1.RestartPolicyNever
			pod.Spec.Containers[0].LivenessProbe = c.execProbe("/tmp/alive")
			c.createPod(pod)
			c.untilPod(pod, "to end, as its liveness probe fails", isTerminal) // the program gets a signal, and chooses its exit code
		},
	},
	{
		Name: "probes/startup", Why: "a slow program is left in peace until it has started",
		Needs: []capability.Feature{capability.ExecProbes},
		Run: func(c *C) {
			pod := c.newPod("startup", stayingProgram())
			probe := c.execProbe("/tmp/started")
			probe.FailureThreshold = 1000
			pod.Spec.Containers[0].StartupProbe = probe
			if p := c.startPod(pod); isReady(p) {
				c.Errorf("it has not started, and the pod is Ready: %s", describePod(p))
			}
			c.runExec(pod, "main", program.Program{Write: []string{"/tmp/started"}})
			c.untilPod(pod, "to be Ready once it has started", isReady)
		},
	},
	{
		Name: "probes/network", Why: "most probes are requests to a port",
		Needs: []capability.Feature{capability.NetworkProbes},
		Run: func(c *C) {
			port, nobodys := c.unusedPort(), c.unusedPort()
			pod := c.newPod("network", program.Program{Listen: port, Stay: program.Forever})
			probe := corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
			probe.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}
			pod.Spec.Containers[0].ReadinessProbe = &probe
			other := c.addContainer(pod, "closed", stayingProgram())
			closed := probe
			closed.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(nobodys)}
			other.ReadinessProbe = &closed
			c.startPod(pod)
			p := c.untilPod(pod, "to have a port that is open", func(p *corev1.Pod) bool { return c.statusOf(p, "main").Ready })
			if c.statusOf(p, "closed").Ready || isReady(p) {
				c.Errorf("nobody listens on the port of the other container, and it is ready: %s", describePod(p))
			}
		},
	},
}

var hooks = []Check{
	{
		Name: "hooks/post-start", Why: "a hook sets up what the program needs",
		Needs: []capability.Feature{capability.PostStartHooks},
		Run: func(c *C) {
			pod := c.newPod("post-start", stayingProgram())
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: c.execCommand(program.Program{Write: []string{"/tmp/hooked"}})},
			}}
			c.startPod(pod)
			c.awaitCondition("the hook to have run", func() (bool, string) {
				_, _, err := c.tryExec(c.ctx, pod, "main", program.Program{Need: []string{"/tmp/hooked"}}, nil)
				return err == nil, "its file is not there"
			})
		},
	},
	{
		Name: "hooks/pre-stop", Why: "a server takes itself out of the load balancer before it stops",
		Needs: []capability.Feature{capability.PreStopHooks},
		Run: func(c *C) {
			pod := c.newPod("pre-stop", stayingProgram())
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: c.execCommand(program.Program{Stay: 2 * time.Second})},
			}}
			c.startPod(pod)
			begin := time.Now()
			c.removePod(pod, 20)
			if took := time.Since(begin); took < 1500*time.Millisecond {
				c.Errorf("the pod stopped after %s, want it after its hook of 2 s", took)
			}
		},
	},
	{
		Name: "hooks/grace", Why: "a hook that hangs must not keep a pod beyond its grace period",
		Needs: []capability.Feature{capability.PreStopHooks},
		Run: func(c *C) {
			pod := c.newPod("hook-grace", stayingProgram())
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: c.execCommand(stayingProgram())},
			}}
			c.startPod(pod)
			c.removePod(pod, 1)
			c.noneLeft(pod)
		},
	},
}
