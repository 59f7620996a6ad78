// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

func TestContainersStartInOrder(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"), mainOne("b")))
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		0s Start b-0`)
}

func TestPostStartHookKeepsTheNextContainerFromStarting(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", postStart), mainOne("b")))
	s.lives["a"] = []life{{pull: time.Second, hook: 5 * time.Second}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		6s Start b-0`)
}

func TestContainerThatCannotStartDoesNotKeepOthersFromStarting(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a"), mainOne("b")))
	s.lives["a"] = []life{{pull: time.Second, reason: "ErrImagePull"}}
	s.run(15 * time.Second)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		1s Start b-0
		11s Start a-0`)
	if w := s.pod.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != "ErrImagePull" {
		t.Errorf("the container waits for %v, want ErrImagePull", w)
	}
}

func TestInitContainersRunOneByOne(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, initOne("i"), initOne("j"), mainOne("a")))
	s.lives["i"] = []life{{runs: 2 * time.Second}}
	s.lives["j"] = []life{{runs: 3 * time.Second}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start i-0
		2s i-0 exits 0
		2s Start j-0
		5s j-0 exits 0
		5s Start a-0`)
}

func TestFailedInitContainerIsRestartedByThePolicy(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]string{
		corev1.RestartPolicyAlways:    `1s Start i-1`,
		corev1.RestartPolicyOnFailure: `1s Start i-1`,
		corev1.RestartPolicyNever: `1s StopSandbox box-0
			1s Finish`,
	} {
		s := newSim(t, newPod(policy, initOne("i"), mainOne("a")))
		s.lives["i"] = []life{{runs: time.Second, code: 1}, {}}
		s.run(time.Minute)
		s.want(`
			0s SetupVolumes
			0s RunSandbox 0
			0s Start i-0
			1s i-0 exits 1
			` + want)
		if failed := s.pod.Status.Phase == corev1.PodFailed; failed != (policy == corev1.RestartPolicyNever) {
			t.Errorf("restartPolicy %s: phase %s", policy, s.pod.Status.Phase)
		}
	}
}

func TestNextContainerWaitsUntilTheSidecarHasStarted(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, sidecar("s", startupProbe), initOne("i"), mainOne("a")))
	s.lives["i"] = []life{{runs: time.Second}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start s-0`)
	s.mem.Probes["s-0"] = plan.Probe{Startup: plan.Success}
	s.run(time.Minute)
	s.want(`
		1m0s Start i-0
		1m1s i-0 exits 0
		1m1s Start a-0`)
}

func TestSidecarIsRestartedDuringInitialization(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, sidecar("s"), initOne("i"), mainOne("a")))
	s.lives["s"] = []life{{runs: 2 * time.Second}, {}}
	s.lives["i"] = []life{{runs: 5 * time.Second}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start s-0
		0s Start i-0
		2s s-0 exits 0
		2s Start s-1
		5s i-0 exits 0
		5s Start a-0`)
}

func TestSidecarIsRestartedAfterTheMainContainersStarted(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, sidecar("s"), mainOne("a")))
	s.lives["s"] = []life{{runs: 2 * time.Second, code: 1}, {}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start s-0
		0s Start a-0
		2s s-0 exits 1
		2s Start s-1`)
}

func TestEphemeralContainerStartsAtOnceAndOnce(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, initOne("i"), mainOne("a"))).up()
	s.lives["e"] = []life{{pull: time.Second, runs: time.Second}}
	ephemeral("e")(s.pod)
	s.run(time.Minute)
	s.want(`
		1s Start e-0
		3s e-0 exits 0`)
}

func TestVolumesComeFirst(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways, mainOne("a"))
	var mem plan.Memory
	next := func(at time.Duration) plan.Plan { return plan.Next(pod, plan.Observed{}, &mem, epoch.Add(at)) }
	p := next(0)
	if len(p.Actions) != 1 || p.Actions[0].Kind != plan.SetupVolumes {
		t.Fatalf("got %v, want SetupVolumes alone", p.Actions)
	}
	a := p.Actions[0]
	for at, wait := range []int{1, 2, 4, 8, 10, 10} {
		now := time.Duration(at) * time.Minute
		mem.Begin(a, epoch.Add(now))
		if p := next(now); len(p.Actions) > 0 {
			t.Errorf("got %v while volumes are set up", p.Actions)
		}
		mem.End(a, plan.Outcome{Reason: "FailedMount", Message: "no"}, epoch.Add(now))
		if p, want := next(now), epoch.Add(now+time.Duration(wait)*time.Second); len(p.Actions) > 0 || !p.Again.Equal(want) {
			t.Errorf("after failure %d: %v, again at %v, want at %v", at+1, p.Actions, p.Again, want)
		}
	}
}
