// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestShutDownPublishes(t *testing.T) {
	failure := ShutDown(nil, time.Minute)
	running := pod("a")
	running.Status = *runningStatus()
	for _, tt := range []struct {
		name      string
		view      View
		phase     corev1.PodPhase
		reason    string
		disrupted bool
	}{
		{"before it has stopped", View{API: running, Report: runningStatus(), StopAsked: true, Attempted: true, Failure: failure}, corev1.PodRunning, "", false},
		{"stopped without a word", View{API: running, Report: runningStatus(), Stopped: true, Attempted: true, Failure: failure}, corev1.PodFailed, "Terminated", true},
		{"ended well because it was asked to", View{API: running, Report: endedStatus(0), StopAsked: true, Attempted: true, Failure: failure}, corev1.PodFailed, "Terminated", true},
		{"ended badly because it was asked to", View{API: running, Report: endedStatus(137), StopAsked: true, Attempted: true, Failure: failure}, corev1.PodFailed, "Terminated", true},
		{"had ended well before", View{API: running, Report: endedStatus(0), Attempted: true}, corev1.PodSucceeded, "", false},
		{"had failed before, as published", View{API: ended(t, 1), Report: endedStatus(1), Attempted: true, Failure: failure}, corev1.PodFailed, "", false},
		{"deleted meanwhile", View{API: pod("a", deleting(30)), Report: runningStatus(), Stopped: true, Attempted: true, Failure: failure}, corev1.PodFailed, "Terminated", true},
		{"refused", View{API: pod("a"), Stopped: true, Failure: Refuse()}, corev1.PodFailed, "NodeShutdown", false},
		{"past its deadline already", View{API: running, Report: runningStatus(), Stopped: true, Attempted: true, Failure: ShutDown(&PodFailure{Reason: "DeadlineExceeded"}, time.Minute)}, corev1.PodFailed, "DeadlineExceeded", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := publish(t, tt.view)
			s := got.Status
			if s.Phase != tt.phase || s.Reason != tt.reason {
				t.Errorf("got %s %q, want %s %q", s.Phase, s.Reason, tt.phase, tt.reason)
			}
			c := condition(s.Conditions, corev1.DisruptionTarget)
			if (c != nil) != tt.disrupted {
				t.Fatalf("condition DisruptionTarget is %+v, want %v", c, tt.disrupted)
			}
			if c != nil && (c.Status != corev1.ConditionTrue || c.Reason != "TerminationByKubelet" || c.Message != s.Message || c.LastTransitionTime.IsZero()) {
				t.Errorf("condition DisruptionTarget is %+v", c)
			}
			if tt.reason == "NodeShutdown" && len(s.ContainerStatuses) > 0 {
				t.Errorf("a container that never started has the status %+v", s.ContainerStatuses)
			}
		})
	}
}

// ended returns a pod whose end is published.
func ended(t *testing.T, exitCode int32) *corev1.Pod {
	t.Helper()
	_, p := publish(t, View{API: pod("a"), Report: endedStatus(exitCode), Attempted: true})
	return p
}

func TestShutDownGrace(t *testing.T) {
	own := func(seconds int64) *corev1.Pod {
		return pod("a", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds })
	}
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		failure *PodFailure
		want    int64
	}{
		{"without a failure", own(40), nil, 40},
		{"with enough time", own(40), ShutDown(nil, time.Minute), 40},
		{"with less", own(40), ShutDown(nil, 20900*time.Millisecond), 20},
		{"with none left", own(40), ShutDown(nil, -time.Second), 1},
		{"by default", pod("a"), ShutDown(nil, time.Minute), 30},
		{"deleted with less", pod("a", deleting(5)), ShutDown(nil, time.Minute), 5},
		{"deleted with more", pod("a", deleting(500)), ShutDown(nil, time.Minute), 60},
		{"failed before", own(40), ShutDown(&PodFailure{Reason: "DeadlineExceeded"}, 10*time.Second), 10},
		{"told before, and has less by now", own(40), ShutDown(ShutDown(nil, 20*time.Second), 10*time.Second), 10},
		{"told before", own(40), ShutDown(ShutDown(nil, 10*time.Second), 20*time.Second), 10},
	} {
		if got := StopGrace(tt.pod, tt.failure); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}
