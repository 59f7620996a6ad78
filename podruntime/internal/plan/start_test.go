// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPodStarts(t *testing.T) {
	s := newSim(t, newPod(corev1.RestartPolicyAlways, mainOne("a"), mainOne("b")))
	s.run(time.Minute)
	s.want(`
		0s SetupVolumes
		0s RunSandbox 0
		0s Start a-0
		0s Start b-0`)
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

func TestCrashLoopBacksOff(t *testing.T) {
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
}

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
