// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

func TestCrashLoopBacksOffTwiceAsLongEachTime(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a")))
	s.lives["a"] = []life{{runs: time.Second, code: 1}}
	s.run(100 * time.Second)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		1s a-0 exits 1
		1s Start a-1
		2s a-1 exits 1
		2s BackOff a (BackOff: Back-off restarting failed container a in pod pod_ns(uid))
		12s Start a-2
		13s a-2 exits 1
		13s RemoveContainer a-0
		13s BackOff a
		33s Start a-3
		34s a-3 exits 1
		34s RemoveContainer a-1
		34s BackOff a
		1m14s Start a-4
		1m15s a-4 exits 1
		1m15s RemoveContainer a-2
		1m15s BackOff a`)
	w := s.pod.Status.ContainerStatuses[0].State.Waiting
	if w == nil || w.Reason != "CrashLoopBackOff" || w.Message != "back-off 1m20s restarting failed container=a pod=pod_ns(uid)" {
		t.Errorf("the container waits for %v", w)
	}
}

func TestBackOffEndsAtFiveMinutes(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a")))
	s.lives["a"] = []life{{runs: time.Second, code: 1}}
	s.run(time.Hour)
	s.log = nil
	started := len(s.starts)
	s.run(50 * time.Minute)
	if n := len(s.starts) - started; n < 9 || n > 10 {
		t.Errorf("%d starts in 50 minutes, want one in 5", n)
	}
}

func TestBackOffIsForgottenAfterTenMinutesOfRunning(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a")))
	short, long := life{runs: time.Second, code: 1}, life{runs: 11 * time.Minute, code: 1}
	s.lives["a"] = []life{short, short, short, long, short, {}}
	s.run(40 * time.Second)
	s.log = nil
	s.run(12 * time.Minute)
	s.want(`
		11m33s a-3 exits 1
		11m33s RemoveContainer a-1
		11m33s Start a-4
		11m34s a-4 exits 1
		11m34s RemoveContainer a-2
		11m34s BackOff a
		11m44s Start a-5`)
}

func TestSucceededContainersAreRestartedByThePolicy(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]string{
		corev1.RestartPolicyAlways: `2s Start a-1`,
		corev1.RestartPolicyOnFailure: `2s StopSandbox box-0
			2s Finish`,
		corev1.RestartPolicyNever: `2s StopSandbox box-0
			2s Finish`,
	} {
		s := newSim(t, newPod(policy, mainOne("a")))
		s.lives["a"] = []life{{runs: 2 * time.Second}, {}}
		s.run(time.Minute)
		s.want(`
			0s SetupVolumes
			0s RunSandbox 0
			0s Start a-0
			2s a-0 exits 0
			` + want)
		if done := s.pod.Status.Phase == corev1.PodSucceeded; done != (policy != corev1.RestartPolicyAlways) {
			t.Errorf("restartPolicy %s: phase %s", policy, s.pod.Status.Phase)
		}
	}
}

func TestContainerRulesComeBeforeThePolicies(t *testing.T) {
	const in, notIn = corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn
	restart := corev1.ContainerRestartRuleActionRestart
	for name, c := range map[string]struct {
		pod   corev1.RestartPolicy
		edit  []func(*corev1.Container)
		code  int32
		again bool
	}{
		"rule matches":               {corev1.RestartPolicyNever, []func(*corev1.Container){own(corev1.ContainerRestartPolicyNever), rule(restart, in, 42)}, 42, true},
		"rule does not match":        {corev1.RestartPolicyAlways, []func(*corev1.Container){own(corev1.ContainerRestartPolicyNever), rule(restart, in, 42)}, 1, false},
		"rule for other codes":       {corev1.RestartPolicyNever, []func(*corev1.Container){own(corev1.ContainerRestartPolicyNever), rule(restart, notIn, 42)}, 1, true},
		"own policy OnFailure, 0":    {corev1.RestartPolicyAlways, []func(*corev1.Container){own(corev1.ContainerRestartPolicyOnFailure)}, 0, false},
		"own policy OnFailure, 1":    {corev1.RestartPolicyNever, []func(*corev1.Container){own(corev1.ContainerRestartPolicyOnFailure)}, 1, true},
		"own policy Always":          {corev1.RestartPolicyNever, []func(*corev1.Container){own(corev1.ContainerRestartPolicyAlways)}, 0, true},
		"no policy of its own":       {corev1.RestartPolicyOnFailure, nil, 1, true},
		"no policy of its own, done": {corev1.RestartPolicyOnFailure, nil, 0, false},
	} {
		s := newSim(t, newPod(c.pod, mainOne("a", c.edit...)))
		s.lives["a"] = []life{{runs: time.Second, code: c.code}, {}}
		s.run(time.Minute)
		if again := len(s.starts) == 2; again != c.again {
			t.Errorf("%s: restarted %v, want %v", name, again, c.again)
		}
	}
}

func TestRestartOfAllContainersBeginsWithTheInitContainers(t *testing.T) {
	all := rule(corev1.ContainerRestartRuleActionRestartAllContainers, corev1.ContainerRestartRuleOnExitCodesOpIn, 7)
	s := newSim(t, newPod(corev1.RestartPolicyNever, initOne("i"), mainOne("a", own(corev1.ContainerRestartPolicyNever), all), mainOne("b")))
	s.lives["i"] = []life{{runs: time.Second}}
	s.lives["a"] = []life{{runs: 5 * time.Second, code: 7}, {}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start i-0
		1s i-0 exits 0
		1s Start a-0
		1s Start b-0
		6s a-0 exits 7
		6s Kill b-0 (Killing: killing)
		6s Stop b-0 2s
		6s b-0 exits 143
		6s Start i-1
		7s i-1 exits 0
		7s Start a-1
		7s Start b-1`)
}

// TestRestartOfAllContainersReplacesWhatWasAboutToStart: a container whose start was in progress when another container ended is also replaced.
func TestRestartOfAllContainersReplacesWhatWasAboutToStart(t *testing.T) {
	all := rule(corev1.ContainerRestartRuleActionRestartAllContainers, corev1.ContainerRestartRuleOnExitCodesOpIn, 7)
	s := newSim(t, newPod(corev1.RestartPolicyNever, initOne("i"), mainOne("a", own(corev1.ContainerRestartPolicyNever), all), mainOne("b")))
	s.lives["i"] = []life{{runs: time.Second}}
	s.lives["a"] = []life{{runs: time.Second, code: 7}, {}}
	s.lives["b"] = []life{{pull: 3 * time.Second}, {}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start i-0
		1s i-0 exits 0
		1s Start a-0
		1s Start b-0
		2s a-0 exits 7
		4s Kill b-0 (Killing: killing)
		4s Stop b-0 2s
		4s b-0 exits 143
		4s Start i-1
		5s i-1 exits 0
		5s Start a-1
		5s Start b-1`)
}

// TestRestartOfAllContainersReplacesWhatOvertookASidecar: only sidecars start before the containers. A container whose start was in progress is also
// replaced.
func TestRestartOfAllContainersReplacesWhatOvertookASidecar(t *testing.T) {
	all := rule(corev1.ContainerRestartRuleActionRestartAllContainers, corev1.ContainerRestartRuleOnExitCodesOpIn, 7)
	s := newSim(t, newPod(corev1.RestartPolicyNever, sidecar("s"), mainOne("a", own(corev1.ContainerRestartPolicyNever), all), mainOne("b")))
	s.lives["s"] = []life{{}, {runs: 20 * time.Second}, {runs: 20 * time.Second}, {runs: 20 * time.Second}, {}}
	s.lives["a"] = []life{{runs: time.Second, code: 7}, {}}
	s.lives["b"] = []life{{pull: 3 * time.Second, stops: time.Second}, {}}
	s.run(time.Hour)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start s-0
		0s Start a-0
		0s Start b-0
		1s a-0 exits 7
		1s Kill s-0 (Killing: killing)
		1s Stop s-0 2s
		1s s-0 exits 143
		3s Kill b-0 (Killing: killing)
		3s Stop b-0 2s
		4s b-0 exits 143
		4s Start s-1
		4s Start a-1
		4s Start b-1
		24s s-1 exits 0
		24s BackOff s (BackOff: Back-off restarting failed container s in pod pod_ns(uid))
		34s Start s-2
		54s s-2 exits 0
		54s BackOff s (BackOff: Back-off restarting failed container s in pod pod_ns(uid))
		1m14s Start s-3
		1m34s s-3 exits 0
		1m34s RemoveContainer s-1
		1m34s BackOff s (BackOff: Back-off restarting failed container s in pod pod_ns(uid))
		2m14s Start s-4`)
}

func TestFailedLivenessProbeRestartsWithTheGraceOfTheProbe(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyOnFailure, mainOne("a", livenessProbe(5)))).up()
	s.lives["a"] = []life{{stops: time.Hour}, {}}
	s.mem.Probes["a-0"] = plan.Probe{Liveness: plan.Failure}
	s.run(time.Minute)
	s.want(`
		1s Kill a-0 (Killing: Container a failed liveness probe, will be restarted)
		1s Stop a-0 5s
		6s a-0 exits 137
		6s Start a-1`)
}

func TestFailedLivenessProbeEndsAPodThatIsNotRestarted(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a", livenessProbe(0)))).up()
	s.mem.Probes["a-0"] = plan.Probe{Liveness: plan.Failure}
	s.run(time.Minute)
	s.want(`
		1s Kill a-0 (Killing: Container a failed liveness probe)
		1s Stop a-0 30s
		1s a-0 exits 143
		1s StopSandbox box-0
		1s Finish`)
}

func TestFailedStartupProbeRestarts(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, sidecar("s", startupProbe), mainOne("a", startupProbe))).up()
	s.mem.Probes["s-0"] = plan.Probe{Startup: plan.Failure}
	s.run(time.Second)
	s.want(`
		1s Kill s-0 (Killing: Init container s failed startup probe)
		1s Stop s-0 30s
		1s s-0 exits 143
		1s Start s-1`)
	s.mem.Probes["s-1"] = plan.Probe{Startup: plan.Success}
	s.run(time.Second)
	s.want(`2s Start a-0`)
	s.mem.Probes["a-0"] = plan.Probe{Startup: plan.Failure}
	s.run(time.Second)
	s.want(`
		3s Kill a-0 (Killing: Container a failed startup probe, will be restarted)
		3s Stop a-0 30s
		3s a-0 exits 143
		3s Start a-1`)
}

func TestFailedPostStartHookKillsTheContainer(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", postStart)))
	s.lives["a"] = []life{{hook: time.Second, hookNo: true}, {}}
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		1s Kill a-0 (Killing: FailedPostStartHook)
		1s Stop a-0 30s
		1s a-0 exits 143
		1s Start a-1`)
}

func TestNewImageReplacesTheContainerWhateverThePolicy(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, sidecar("s"), mainOne("a"))).up()
	s.pod.Spec.Containers[0].Image = "other"
	s.run(time.Second)
	s.want(`
		1s Kill a-0 (Killing: Container a definition changed, will be restarted)
		1s Stop a-0 30s
		1s a-0 exits 143
		1s Start a-1`)
	s.pod.Spec.InitContainers[0].Image = "other"
	s.run(time.Second)
	s.want(`
		2s Kill s-0 (Killing: Init container s definition changed)
		2s Stop s-0 30s
		2s s-0 exits 143
		2s Start s-1`)
}

func TestNewResourcesAreGivenAsTheContainerRuns(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", memory("1Gi")))).up()
	memory("2Gi")(&s.pod.Spec.Containers[0])
	s.run(time.Second)
	s.want(`1s Resize a-0`)
	st := s.pod.Status.ContainerStatuses[0]
	if got := st.Resources.Limits.Memory().String() + " " + st.AllocatedResources.Memory().String(); got != "2Gi 2Gi" {
		t.Errorf("resources %s, want 2Gi 2Gi", got)
	}
}

func TestNewResourcesRestartAContainerThatWantsIt(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", memory("1Gi"), func(c *corev1.Container) {
		c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	}))).up()
	memory("2Gi")(&s.pod.Spec.Containers[0])
	s.run(time.Second)
	s.want(`
		1s Kill a-0 (Killing: Container a resize requires restart)
		1s Stop a-0 30s
		1s a-0 exits 143
		1s Start a-1`)
}

func TestResizeThatIsPendingDoesNotBegin(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", memory("1Gi")))).up()
	memory("2Gi")(&s.pod.Spec.Containers[0])
	s.mem.ResizePending = &plan.ResizePending{Reason: "Infeasible"}
	s.run(time.Second)
	s.want(``)
	if got := s.pod.Status.ContainerStatuses[0].AllocatedResources.Memory().String(); got != "1Gi" {
		t.Errorf("allocated %s, want 1Gi", got)
	}
}

func memory(q string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}
		c.Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}
