// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// TestAnyPodConverges runs random pods in a runtime that fails in random ways, and at last recovers. No
// container runs twice, main containers wait for the init containers, restart counts do not fall, and a deleted
// pod goes away.
func TestAnyPodConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pod := drawPod(rt)
		s := newSim(rt, pod)
		s.once = map[string]bool{}
		counts := map[string]int32{}
		s.check = func(p plan.Plan) {
			judgePlan(rt, s, p)
			judgeStatus(rt, s, counts)
		}
		for _, c := range allOf(pod) {
			s.lives[c.Name] = drawLives(rt, pod, c.Name)
		}
		for range rapid.IntRange(0, 8).Draw(rt, "disturbances") {
			s.run(time.Duration(rapid.IntRange(0, 60_000).Draw(rt, "after ms")) * time.Millisecond)
			disturb(rt, s)
			passProbes(s)
		}
		for range 10 {
			s.run(6 * time.Minute)
			passProbes(s)
		}
		judgeRest(rt, s)
		s.mem.Delete(30*time.Second, s.now)
		s.run(2 * time.Minute)
		if !s.gone || len(s.list) > 0 || len(s.boxes) > 0 {
			rt.Fatalf("the deleted pod is not gone: %d containers, %d sandboxes\n%s", len(s.list), len(s.boxes), tail(s))
		}
		if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			rt.Fatalf("the deleted pod is %s\n%s", phase, tail(s))
		}
	})
}

func tail(s *sim) string { return strings.Join(s.log[max(0, len(s.log)-40):], "\n") }

func allOf(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

func drawPod(rt *rapid.T) *corev1.Pod {
	pod := newPod(rapid.SampledFrom([]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}).Draw(rt, "policy"))
	for i := range rapid.IntRange(0, 3).Draw(rt, "inits") {
		edit := drawEdits(rt, i)
		name := fmt.Sprintf("i%d", i)
		if rapid.Bool().Draw(rt, name+" is a sidecar") {
			sidecar(name, edit...)(pod)
		} else {
			initOne(name)(pod)
		}
	}
	for i := range rapid.IntRange(1, 3).Draw(rt, "mains") {
		edit := drawEdits(rt, i)
		if rapid.IntRange(0, 4).Draw(rt, "rule") == 0 {
			edit = append(edit, own(corev1.ContainerRestartPolicyNever), rule(corev1.ContainerRestartRuleActionRestartAllContainers, corev1.ContainerRestartRuleOnExitCodesOpIn, 7))
		}
		mainOne(fmt.Sprintf("m%d", i), edit...)(pod)
	}
	return pod
}

func drawEdits(rt *rapid.T, i int) []func(*corev1.Container) {
	all := []func(*corev1.Container){startupProbe, livenessProbe(3), preStop, postStart}
	return all[:rapid.IntRange(0, len(all)).Draw(rt, fmt.Sprint("edits ", i))]
}

// drawLives returns random lives, and a good life at the end.
func drawLives(rt *rapid.T, pod *corev1.Pod, name string) []life {
	lives := append(rapid.SliceOfN(rapid.Custom(drawLife), 0, 4).Draw(rt, "lives of "+name), life{})
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name && !plan.Sidecar(&c) }) {
		for i := range lives { // the last life has no hooks, and ends
			lives[i].hook, lives[i].hookNo, lives[i].runs = 0, false, max(time.Second, lives[i].runs)
		}
	}
	return lives
}

func drawLife(rt *rapid.T) life {
	seconds := func(what string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(rt, what)) * time.Second
	}
	return life{
		pull:   seconds("pull", 3),
		reason: rapid.SampledFrom([]string{"", "", "", "ErrImagePull"}).Draw(rt, "reason"),
		hook:   seconds("hook", 3),
		hookNo: rapid.IntRange(0, 5).Draw(rt, "hook fails") == 0,
		runs:   seconds("runs", 20),
		code:   rapid.SampledFrom([]int32{0, 0, 1, 7, 137}).Draw(rt, "code"),
		stops:  seconds("stops", 40),
		pre:    seconds("preStop", 40),
	}
}

// disturb makes a random disturbance of the pod.
func disturb(rt *rapid.T, s *sim) {
	switch what := rapid.IntRange(0, 7).Draw(rt, "disturbance"); {
	case what == 0 && len(s.boxes) > 0:
		s.killBox(s.boxes[len(s.boxes)-1].ID)
	case what == 1 && len(s.list) > 0:
		c := &s.list[rapid.IntRange(0, len(s.list)-1).Draw(rt, "which")]
		s.exit(c, 9)
	case what == 2 && len(s.list) > 0:
		c := &s.list[rapid.IntRange(0, len(s.list)-1).Draw(rt, "which")]
		s.mem.Probes[c.ID] = plan.Probe{Startup: plan.Success, Liveness: plan.Failure}
	case what == 3:
		s.pod.Spec.Containers[0].Image += "x"
	case what == 4:
		s.ops = nil // the worker is killed with all actions in progress
		s.mem = plan.Memory{StartTime: epoch, Probes: s.mem.Probes}
	case what == 5 && len(s.list) > 0:
		if c := &s.list[len(s.list)-1]; c.State == plan.Running {
			c.State = plan.Unknown
			delete(s.exits, c.ID)
		}
	}
}

// passProbes lets the startup probes of all instances succeed, except probes that have failed.
func passProbes(s *sim) {
	for _, c := range s.list {
		if s.mem.Probes[c.ID] == (plan.Probe{}) {
			s.mem.Probes[c.ID] = plan.Probe{Startup: plan.Success, Liveness: plan.Success}
		}
	}
}

// judgePlan checks the containers that the plan starts. The runtime itself checks that no container is started
// twice.
func judgePlan(rt *rapid.T, s *sim, p plan.Plan) {
	for _, a := range p.Actions {
		if a.Kind != plan.Start || !slices.ContainsFunc(s.pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == a.Container }) {
			continue
		}
		if slices.ContainsFunc(s.list, func(c plan.Container) bool {
			return c.SandboxID == a.SandboxID && strings.HasPrefix(c.Name, "m")
		}) {
			continue // init containers were done when the other container was started
		}
		for _, c := range s.pod.Spec.InitContainers {
			list := plan.Look(s.pod, s.seen(), &s.mem, s.now).Instances(c.Name)
			if len(list) == 0 || !plan.Sidecar(&c) && (list[0].State != plan.Exited || list[0].ExitCode != 0) {
				rt.Fatalf("%s is started before %s is done\n%s", a.Container, c.Name, tail(s))
			}
		}
	}
}

func judgeStatus(rt *rapid.T, s *sim, counts map[string]int32) {
	st := s.pod.Status
	for _, c := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if c.RestartCount < counts[c.Name] {
			rt.Fatalf("the restart count of %s falls from %d to %d\n%s", c.Name, counts[c.Name], c.RestartCount, tail(s))
		}
		counts[c.Name] = c.RestartCount
	}
	terminal := st.Phase == corev1.PodSucceeded || st.Phase == corev1.PodFailed
	if running := slices.ContainsFunc(s.list, func(c plan.Container) bool { return c.State == plan.Running }); terminal && running && !s.forgot() {
		rt.Fatalf("the pod is %s, and containers run\n%s", st.Phase, tail(s))
	}
}

// forgot reports whether the worker does not know, for example after a restart, that the pod has ended.
func (s *sim) forgot() bool { return !s.mem.Finished() }

// judgeRest checks a pod that was undisturbed for an hour.
func judgeRest(rt *rapid.T, s *sim) {
	if s.mem.Finished() {
		if slices.ContainsFunc(s.list, func(c plan.Container) bool { return c.State == plan.Running }) {
			rt.Fatalf("the pod has ended, and containers run\n%s", tail(s))
		}
		return
	}
	for _, c := range s.pod.Spec.Containers {
		i := slices.IndexFunc(s.pod.Status.ContainerStatuses, func(st corev1.ContainerStatus) bool { return st.Name == c.Name })
		st := s.pod.Status.ContainerStatuses[i]
		if end := st.State.Terminated; st.State.Running == nil && (end == nil || podstatus.RestartsAfter(s.pod, &c, end.ExitCode)) {
			rt.Fatalf("%s does not run: %+v\n%s", c.Name, st.State, tail(s))
		}
	}
}
