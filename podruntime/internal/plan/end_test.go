// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

func TestDeletedPodEndsWithinItsGracePeriod(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"), mainOne("b"))).up()
	s.lives["a"] = []life{{stops: time.Hour}}
	s.mem.Delete(10*time.Second, s.now)
	s.run(time.Minute)
	s.want(`
		1s Kill a-0 (Killing: Stopping container a)
		1s Stop a-0 10s
		1s Kill b-0 (Killing: Stopping container b)
		1s Stop b-0 10s
		1s b-0 exits 143
		11s a-0 exits 137
		11s StopSandbox box-0
		11s Finish
		11s RemoveContainer a-0
		11s RemoveContainer b-0
		11s RemoveSandbox box-0`)
	if !s.gone {
		t.Error("the pod is not gone")
	}
}

func TestShorterGracePeriodCounts(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	s.lives["a"] = []life{{stops: time.Hour}}
	s.mem.Delete(time.Minute, s.now)
	s.run(time.Second)
	s.mem.Delete(5*time.Second, s.now)
	s.run(time.Second)
	s.mem.Delete(time.Hour, s.now)
	s.run(time.Minute)
	s.want(`
		1s Kill a-0
		1s Stop a-0 1m0s
		2s Stop a-0 5s
		7s a-0 exits 137
		7s StopSandbox box-0
		7s Finish
		7s RemoveContainer a-0
		7s RemoveSandbox box-0`)
}

func TestPreStopHookIsCountedWithinTheGracePeriod(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", preStop))).up()
	s.lives["a"] = []life{{pre: 4 * time.Second, stops: time.Hour}}
	s.mem.Delete(10*time.Second, s.now)
	s.run(10 * time.Second)
	s.want(`
		1s Kill a-0
		1s PreStop a-0 10s
		5s Stop a-0 6s`)
}

func TestContainerGetsTwoSecondsAfterAHookThatTookAll(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", preStop))).up()
	s.lives["a"] = []life{{pre: time.Hour, stops: time.Hour}}
	s.mem.Delete(10*time.Second, s.now)
	s.run(12 * time.Second)
	s.want(`
		1s Kill a-0
		1s PreStop a-0 10s
		11s Stop a-0 2s`)
}

func TestGraceOfZeroRunsNoHook(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", preStop))).up()
	s.mem.Delete(0, s.now)
	s.run(0)
	s.want(`
		1s Kill a-0
		1s Stop a-0 2s
		1s a-0 exits 143
		1s StopSandbox box-0
		1s Finish
		1s RemoveContainer a-0
		1s RemoveSandbox box-0`)
}

func TestSidecarsEndAfterTheMainContainersInReverseOrder(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, sidecar("s1", preStop), sidecar("s2"), mainOne("a"))).up()
	s.lives["a"] = []life{{stops: 3 * time.Second}}
	s.lives["s2"] = []life{{stops: 2 * time.Second}}
	s.mem.Delete(10*time.Second, s.now)
	s.run(time.Minute)
	s.want(`
		1s Kill a-0
		1s Stop a-0 10s
		1s Kill s1-0
		1s PreStop s1-0 10s
		1s Kill s2-0
		4s a-0 exits 143
		4s Stop s2-0 7s
		6s s2-0 exits 143
		6s Stop s1-0 5s
		6s s1-0 exits 143
		6s StopSandbox box-0
		6s Finish
		6s RemoveContainer a-0
		6s RemoveContainer s1-0
		6s RemoveContainer s2-0
		6s RemoveSandbox box-0`)
}

func TestSidecarsEndWhenTheGracePeriodIsOver(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, sidecar("s1"), sidecar("s2"), mainOne("a"))).up()
	s.lives["a"] = []life{{stops: time.Hour}}
	s.mem.Delete(10*time.Second, s.now)
	s.lives["s1"] = []life{{stops: time.Second}}
	s.lives["s2"] = s.lives["s1"]
	s.run(10*time.Second + time.Millisecond)
	s.want(`
		1s Kill a-0
		1s Stop a-0 10s
		1s Kill s1-0
		1s Kill s2-0
		11s a-0 exits 137
		11s Stop s1-0 2s
		11s Stop s2-0 2s`)
}

func TestSidecarsEndWhenAllMainContainersAreDone(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, sidecar("s1"), sidecar("s2"), mainOne("a"), mainOne("b")))
	s.lives["a"] = []life{{runs: 2 * time.Second}}
	s.lives["b"] = []life{{runs: 4 * time.Second}}
	s.lives["s2"] = []life{{stops: time.Second}}
	s.run(time.Second)
	s.log = nil
	s.run(time.Minute)
	s.want(`
		2s a-0 exits 0
		4s b-0 exits 0
		4s Kill s1-0
		4s Kill s2-0
		4s Stop s2-0 30s
		5s s2-0 exits 143
		5s Stop s1-0 29s
		5s s1-0 exits 143
		5s StopSandbox box-0
		5s Finish`)
	if s.pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("phase %s, want Succeeded: the ends of sidecars do not count", s.pod.Status.Phase)
	}
}

func TestEndedPodKeepsItsContainersUntilItIsDeleted(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyNever, mainOne("a")))
	s.lives["a"] = []life{{runs: time.Millisecond, code: 3}}
	s.up()
	s.run(time.Hour)
	s.want(``)
	s.mem.Delete(30*time.Second, s.now)
	s.run(0)
	s.want(`
		1h0m1s RemoveContainer a-0
		1h0m1s RemoveSandbox box-0`)
}

func TestDeadlineEndsThePod(t *testing.T) {
	seconds := int64(20)
	pod := newPod(corev1.RestartPolicyAlways, mainOne("a"))
	pod.Spec.ActiveDeadlineSeconds = &seconds
	s := newSim(t, pod).up()
	s.run(time.Minute)
	s.want(`
		20s Kill a-0 (Killing: Stopping container a)
		20s Stop a-0 30s
		20s a-0 exits 143
		20s StopSandbox box-0
		20s Finish`)
	if st := s.pod.Status; st.Phase != corev1.PodFailed || st.Reason != "DeadlineExceeded" {
		t.Errorf("%s, %s, want Failed, DeadlineExceeded", st.Phase, st.Reason)
	}
}

func TestEvictedPodFails(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"))).up()
	grace := time.Second
	s.mem.Eviction = &plan.Eviction{Reason: "Evicted", Message: "too much", Grace: &grace}
	s.run(time.Minute)
	s.want(`
		1s Kill a-0
		1s Stop a-0 2s
		1s a-0 exits 143
		1s StopSandbox box-0
		1s Finish`)
	if st := s.pod.Status; st.Phase != corev1.PodFailed || st.Reason != "Evicted" || st.Message != "too much" {
		t.Errorf("%s, %s, %s", st.Phase, st.Reason, st.Message)
	}
}

func TestDeletionEndsAStartInProgress(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a")))
	s.lives["a"] = []life{{pull: time.Hour, reason: "ErrImagePull"}}
	s.up()
	s.mem.Delete(30*time.Second, s.now)
	s.run(0)
	s.want(`
		1s CancelStart a
		1s StopSandbox box-0
		1s Finish
		1s RemoveSandbox box-0`)
}

func TestPodWithoutSpecIsStopped(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a", preStop))).up()
	s.pod.Spec.Containers, s.pod.Spec.TerminationGracePeriodSeconds = nil, nil
	s.mem = plan.Memory{}
	s.run(time.Minute)
	s.log = nil
	s.mem.Delete(time.Second, s.now)
	s.run(0)
	s.want(`
		1m1s Kill a-0
		1m1s Stop a-0 2s
		1m1s a-0 exits 143
		1m1s StopSandbox box-0
		1m1s Finish
		1m1s RemoveContainer a-0
		1m1s RemoveSandbox box-0`)
}
