// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContainersOfAJobEndTogether checks that a Job's pod with several containers goes on after its first
// container has ended, and ends with the last one. All exit codes count. Without this, a task of ECS ends with
// its first essential container.
func TestContainersOfAJobEndTogether(t *testing.T) {
	p := open(t, cloudOf(t))
	for name, c := range map[string]struct {
		codes [2]int32
		want  corev1.PodPhase
	}{"well": {[2]int32{0, 0}, corev1.PodSucceeded}, "first": {[2]int32{3, 0}, corev1.PodFailed}, "last": {[2]int32{0, 4}, corev1.PodFailed}} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(name, program.Program{Exit: c.codes[0]})
			slow := program.Program{Stay: 2 * time.Second, Exit: c.codes[1]}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "slow", Image: "program", Args: slow.Args()})
			if err := p.kit.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			until(t, p, name, "running with one container that has ended", func(pod *corev1.Pod) bool {
				s := pod.Status.ContainerStatuses
				return isRunning(pod) && len(s) == 2 && s[0].State.Terminated != nil && s[1].State.Running != nil && !s[1].State.Running.StartedAt.IsZero()
			})
			end := until(t, p, name, "over", isOver)
			for i, s := range end.Status.ContainerStatuses {
				if s.State.Terminated == nil || s.State.Terminated.ExitCode != c.codes[i] {
					t.Errorf("container %s: got %+v, want the code %d", s.Name, s.State, c.codes[i])
				}
			}
			if end.Status.Phase != c.want {
				t.Errorf("got %s: %s, want %s", end.Status.Phase, end.Status.Message, c.want)
			}
		})
	}
}
