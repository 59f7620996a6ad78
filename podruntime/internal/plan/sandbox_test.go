// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

func TestDeadSandboxIsReplacedWithAllContainers(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, initOne("i"), mainOne("a")))
	s.lives["i"] = []life{{runs: time.Millisecond}}
	s.up()
	s.killBox("box-0")
	s.run(time.Minute)
	s.want(`
		1s a-0 exits 137
		1s StopSandbox box-0
		1s RunSandbox 1 (SandboxChanged: Pod sandbox changed, it will be killed and re-created.)
		1s Start i-1
		1.001s i-1 exits 0
		1.001s Start a-1`)
}

func TestContainersThatOutliveTheirSandboxAreKilled(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	s.boxes[0].Ready = false
	s.run(0)
	s.want(`
		1s Kill a-0 (Killing: Stopping container a)
		1s Stop a-0 30s
		1s a-0 exits 143
		1s StopSandbox box-0
		1s RunSandbox 1
		1s Start a-1`)
}

func TestDeadSandboxEndsAPodThatIsNotRestarted(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a"))).up()
	s.killBox("box-0")
	s.run(time.Minute)
	s.want(`
		1s a-0 exits 137
		1s StopSandbox box-0
		1s Finish`)
	if s.pod.Status.Phase != corev1.PodFailed {
		t.Errorf("phase %s, want Failed", s.pod.Status.Phase)
	}
}

func TestSucceededContainersAreNotRepeatedInANewSandbox(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyOnFailure, mainOne("a"), mainOne("b")))
	s.lives["a"] = []life{{runs: time.Millisecond}}
	s.up()
	s.killBox("box-0")
	s.run(0)
	s.want(`
		1s b-0 exits 137
		1s StopSandbox box-0
		1s RunSandbox 1
		1s Start b-1`)
}

func TestOldSandboxGoesWithTheLastOfItsContainers(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	for range 3 {
		s.killBox(s.boxes[len(s.boxes)-1].ID)
		s.run(10 * time.Minute)
	}
	if len(s.boxes) != 3 || len(s.list) != 3 {
		t.Errorf("%d sandboxes and %d containers, want 3 and 3: one in use, and those of two dead instances", len(s.boxes), len(s.list))
	}
}

func TestWorkerThatForgotEverythingKeepsThePod(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, initOne("i"), sidecar("s", startupProbe), mainOne("a")))
	s.lives["i"] = []life{{runs: time.Millisecond}}
	s.run(time.Second)
	s.mem.Probes["s-0"] = plan.Probe{Startup: plan.Success}
	s.up()
	s.mem = plan.Memory{StartTime: epoch}
	s.run(time.Minute)
	s.want(`2s SetupVolumes`)
	if st := s.pod.Status.InitContainerStatuses[1]; st.Started == nil || !*st.Started {
		t.Error("the sidecar is not started any more")
	}
}

func TestRestartCountsGoOnWhenTheRuntimeForgetsEverything(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a")))
	s.lives["a"] = []life{{runs: time.Second, code: 1}, {}}
	s.run(time.Minute)
	s.log = nil
	s.boxes, s.list, s.mem = nil, nil, plan.Memory{StartTime: epoch}
	s.run(0)
	s.want(`
		1m0s SetupVolumes
		1m0s RunSandbox 0
		1m0s Start a-2`)
}

func TestPodThatIsNotRestartedFailsWhenTheRuntimeForgetsIt(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a"))).up()
	s.boxes, s.list, s.mem = nil, nil, plan.Memory{StartTime: epoch}
	s.run(0)
	s.want(`1s Finish`)
	st := s.pod.Status
	if end := st.ContainerStatuses[0].State.Terminated; st.Phase != corev1.PodFailed || end == nil || end.Reason != "ContainerStatusUnknown" {
		t.Errorf("phase %s, container %v", st.Phase, st.ContainerStatuses[0].State)
	}
}

func TestContainerInUnknownStateIsStoppedBeforeTheNext(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	s.list[0].State = plan.Unknown
	s.run(time.Second)
	s.want(`
		1s Kill a-0 (Killing: Container is in "unknown" state, try killing it before restart)
		1s Stop a-0 30s
		1s Start a-1`)
}

func TestContainerThatWasNeverStartedIsReplaced(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a"))).up()
	s.list[0].State = plan.Created
	s.mem = plan.Memory{StartTime: epoch}
	s.run(time.Second)
	s.want(`
		1s SetupVolumes
		1s Start a-1
		1s RemoveContainer a-0`)
}

func TestInstanceThatTheRuntimeDoesNotShowYetIsWaitedFor(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	list := s.list
	s.list, s.pod.Status.ContainerStatuses = nil, nil
	s.run(5 * time.Second)
	s.want(``)
	s.list = list
	s.run(time.Hour)
	s.want(``)
}
