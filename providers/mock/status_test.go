// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestStatusOfEveryStage shows the status of each stage of a simulated life.
func TestStatusOfEveryStage(t *testing.T) {
	created := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return created.Add(time.Duration(seconds) * time.Second) }
	type seen struct {
		Phase    corev1.PodPhase
		Ready    bool
		State    string
		ExitCode int32
		Restarts int32
		IP       string
	}
	for _, tt := range []struct {
		name   string
		moment moment
		want   seen
	}{
		{"creating", moment{stage: creating, next: at(9)}, seen{Phase: corev1.PodPending, State: "ContainerCreating"}},
		{"running", moment{stage: running, begun: at(1), started: at(1), ready: at(9)}, seen{Phase: corev1.PodRunning, State: "running", IP: "10.0.0.1"}},
		{"ready", moment{stage: running, begun: at(1), started: at(1), ready: at(2)}, seen{Phase: corev1.PodRunning, Ready: true, State: "running", IP: "10.0.0.1"}},
		{"restarting", moment{stage: restarting, run: 2, begun: at(1), started: at(2), finished: at(3), next: at(9), exitCode: 1},
			seen{Phase: corev1.PodRunning, State: "CrashLoopBackOff", Restarts: 2, IP: "10.0.0.1"}},
		{"succeeded", moment{stage: exited, begun: at(1), started: at(1), finished: at(3)}, seen{Phase: corev1.PodSucceeded, State: "Completed", IP: "10.0.0.1"}},
		{"failed", moment{stage: exited, begun: at(1), started: at(1), finished: at(3), exitCode: 7}, seen{Phase: corev1.PodFailed, State: "Error", ExitCode: 7, IP: "10.0.0.1"}},
		{"deleted", moment{stage: exited, begun: at(1), started: at(1), finished: at(3), exitCode: killed, stopped: true},
			seen{Phase: corev1.PodFailed, State: reasonContainerDeleted, ExitCode: killed, IP: "10.0.0.1"}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		status := statusOf(pod, created, tt.moment, "192.0.2.1", "10.0.0.1", at(5))
		c := status.ContainerStatuses[0]
		got := seen{Phase: status.Phase, Ready: c.Ready, Restarts: c.RestartCount, IP: status.PodIP}
		switch s := c.State; {
		case s.Waiting != nil:
			got.State = s.Waiting.Reason
		case s.Running != nil:
			got.State = "running"
		case s.Terminated != nil:
			got.State, got.ExitCode = s.Terminated.Reason, s.Terminated.ExitCode
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}
