// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// startError and startErrorCode are a kubelet's reason and exit code for a container that cannot start.
const (
	startError     = "StartError"
	startErrorCode = 128
)

// missingCommand is a command missing in all images and machines.
const missingCommand = "nonexistent-command"

var starts = []Check{
	{
		Name: "starts/not-found", Why: "a mistyped command ends the pod: a pod that waits instead holds what it asked for, and its Job never fails",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run:   func(c *C) { c.cannotStart(c.podWithCommand("not-found", missingCommand), missingCommand) },
	},
	{
		Name: "starts/not-executable", Why: "a script from a ConfigMap without defaultMode is the usual case",
		Needs: []capability.Feature{capability.RunToCompletion, capability.ObjectVolumes},
		Run: func(c *C) {
			pod := c.podWithCommand("not-executable", "/data/color")
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: objectName}, DefaultMode: modePointer(0o644),
			}}}}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			c.cannotStart(pod, "/data/color")
		},
	},
	{
		Name: "starts/directory", Why: "a command that names the directory of a program ends the pod as any other that cannot start",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run:   func(c *C) { c.cannotStart(c.podWithCommand("is-directory", "/"), "/") },
	},
	{
		Name: "starts/no-working-directory", Why: "some runtimes make the directory and some refuse it; a pod that waits for it waits for ever",
		Needs: []capability.Feature{capability.RunToCompletion},
		Run: func(c *C) {
			pod := c.newPod("no-directory", program.Program{})
			pod.Spec.Containers[0].WorkingDir = "/no/such/directory"
			c.objects.add(pod)
			if err := c.tryCreate(c.ctx, pod); errdefs.IsInvalidInput(err) {
				c.Skipf("the provider refuses working directories: %v", err)
			} else if err != nil {
				c.Fatalf("CreatePod of %s: %v", pod.Name, err)
			}
			p := c.untilPod(pod, "to end", isTerminal)
			if end := c.endOf(p, "main"); p.Status.Phase != corev1.PodSucceeded || end.ExitCode != 0 {
				c.endedAtStart(p, "/no/such/directory")
			}
		},
	},
	{
		Name: "starts/backs-off", Why: "with restartPolicy Always the command may be there later, as when a volume gets its files; until then users see why it is not",
		Run: func(c *C) {
			pod := c.podWithCommand("backs-off", missingCommand)
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			p := c.untilRestarted(pod)
			s := c.statusOf(p, "main")
			if last := s.LastTerminationState.Terminated; isTerminal(p) || s.State.Running != nil || last == nil || last.ExitCode == 0 {
				c.Errorf("a container that cannot start and is restarted is %s, want that it waits, with its last end in lastState", describePod(p))
			}
		},
	},
}

// podWithCommand returns a pod with that command in its container main.
func (c *C) podWithCommand(name, command string) *corev1.Pod {
	pod := c.newPod(name, program.Program{})
	pod.Spec.Containers[0].Command = []string{command}
	return pod
}

// cannotStart makes a pod with a container that cannot start, and checks the pod's end.
func (c *C) cannotStart(pod *corev1.Pod, names string) { c.endedAtStart(c.runToEnd(pod), names) }

// endedAtStart checks the end of a container that could not start. If the service has its own reasons, it must at least report a failure.
func (c *C) endedAtStart(p *corev1.Pod, names string) {
	end := c.endOf(p, "main")
	switch {
	case p.Status.Phase != corev1.PodFailed || end.ExitCode == 0:
		c.Errorf("a pod whose container cannot start is %s, want Failed with an exit code that is not 0", describePod(p))
	case c.h.OwnStartErrors:
	case end.Reason != startError || end.ExitCode != startErrorCode || !strings.Contains(end.Message, names):
		c.Errorf("a container that cannot start is %s, want the exit code %d, the reason %s and a message that names %s", describePod(p), startErrorCode, startError, names)
	}
}
