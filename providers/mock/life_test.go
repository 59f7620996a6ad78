// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }

// plan returns the life of a pod that starts after 2 s, is ready 3 s later, runs for 10 s, and waits 5 s for its
// next run.
func plan(policy corev1.RestartPolicy, exitCode int32) life {
	return life{created: time.Unix(1000, 0), policy: policy, behavior: Behavior{
		StartDelay: seconds(2), ReadyDelay: seconds(3), RunFor: seconds(10), ExitCode: exitCode,
		RestartDelay: seconds(5), DeleteDelay: seconds(4),
	}}
}

func TestLife(t *testing.T) {
	type want struct {
		stage stage
		run   int32
		ready bool
		phase corev1.PodPhase
		next  int // seconds after creation, 0 for never
	}
	for _, tc := range []struct {
		name     string
		policy   corev1.RestartPolicy
		exitCode int32
		at       int
		want     want
	}{
		{"created", corev1.RestartPolicyNever, 0, 0, want{creating, 0, false, corev1.PodPending, 2}},
		{"started", corev1.RestartPolicyNever, 0, 2, want{running, 0, false, corev1.PodRunning, 5}},
		{"ready", corev1.RestartPolicyNever, 0, 5, want{running, 0, true, corev1.PodRunning, 12}},
		{"completed", corev1.RestartPolicyNever, 0, 12, want{exited, 0, false, corev1.PodSucceeded, 0}},
		{"failed", corev1.RestartPolicyNever, 3, 12, want{exited, 0, false, corev1.PodFailed, 0}},
		{"still failed", corev1.RestartPolicyNever, 3, 9999, want{exited, 0, false, corev1.PodFailed, 0}},
		{"no failure, no restart", corev1.RestartPolicyOnFailure, 0, 20, want{exited, 0, false, corev1.PodSucceeded, 0}},
		{"waits for a restart", corev1.RestartPolicyOnFailure, 1, 12, want{restarting, 0, false, corev1.PodRunning, 17}},
		{"restarted", corev1.RestartPolicyOnFailure, 1, 17, want{running, 1, false, corev1.PodRunning, 20}},
		{"ready again", corev1.RestartPolicyAlways, 0, 20, want{running, 1, true, corev1.PodRunning, 27}},
		{"many restarts", corev1.RestartPolicyAlways, 0, 2 + 15*100 + 12, want{restarting, 100, false, corev1.PodRunning, 2 + 15*101}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := plan(tc.policy, tc.exitCode)
			now := l.created.Add(time.Duration(tc.at) * time.Second)
			m := l.momentAt(now)
			got := want{m.stage, m.run, readyAt(m, now), phaseOf(m), 0}
			if !m.next.IsZero() {
				got.next = int(m.next.Sub(l.created) / time.Second)
			}
			if got != tc.want {
				t.Errorf("after %d s: got %+v, want %+v", tc.at, got, tc.want)
			}
		})
	}
}

func TestLifeOfDeletedPod(t *testing.T) {
	type want struct {
		stops    int // seconds after creation
		exitCode int32
		phase    corev1.PodPhase
	}
	for _, tc := range []struct {
		name    string
		deletes [][2]int // at, grace
		want    want
	}{
		{"before its start", [][2]int{{1, 30}}, want{1, 137, corev1.PodFailed}},
		{"while it runs", [][2]int{{3, 30}}, want{7, 0, corev1.PodSucceeded}},
		{"grace too short", [][2]int{{3, 2}}, want{5, 137, corev1.PodFailed}},
		{"by force", [][2]int{{3, 0}}, want{3, 137, corev1.PodFailed}},
		{"then by force", [][2]int{{3, 30}, {4, 0}}, want{4, 137, corev1.PodFailed}},
		{"a longer grace changes nothing", [][2]int{{3, 2}, {4, 30}}, want{5, 137, corev1.PodFailed}},
		{"exits by itself first", [][2]int{{10, 30}}, want{12, 9, corev1.PodFailed}},
		{"while it waits for a restart", [][2]int{{13, 30}}, want{13, 9, corev1.PodFailed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := plan(corev1.RestartPolicyAlways, 9)
			for _, d := range tc.deletes {
				l.stopContainers(l.created.Add(time.Duration(d[0])*time.Second), time.Duration(d[1])*time.Second)
			}
			stops := l.created.Add(time.Duration(tc.want.stops) * time.Second)
			if m := l.momentAt(stops.Add(-1)); m.stopped || (tc.want.stops > tc.deletes[0][0] && !m.next.Equal(stops) && m.next.After(stops)) {
				t.Errorf("just before: got %+v, want not stopped, and a change at the latest when it stops", m)
			}
			for _, later := range []time.Duration{0, time.Hour} {
				m := l.momentAt(stops.Add(later))
				if !m.stopped || m.stage != exited || m.exitCode != tc.want.exitCode || phaseOf(m) != tc.want.phase || !m.next.IsZero() {
					t.Errorf("%s after the stop: got %+v (%s), want %+v", later, m, phaseOf(m), tc.want)
				}
			}
		})
	}
}

func TestCompletedPodStaysCompletedWhenDeleted(t *testing.T) {
	l := plan(corev1.RestartPolicyNever, 0)
	now := l.created.Add(time.Minute)
	before := l.momentAt(now)
	l.stopContainers(now, 30*time.Second)
	after := l.momentAt(now)
	if !after.stopped || after.exitCode != before.exitCode || !after.finished.Equal(before.finished) {
		t.Errorf("got %+v, want what it was before: %+v", after, before)
	}
}

func phaseOf(m moment) corev1.PodPhase {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	return statusOf(pod, time.Time{}, m, "", "", time.Time{}).Phase
}
