// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// started makes the status show a started pod, in any phase.
func started(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: now} }

func TestHasRun(t *testing.T) {
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"new", pod("a"), false},
		{"running", pod("a", inPhase(corev1.PodRunning)), true},
		{"pending", pod("a", inPhase(corev1.PodPending)), false},
		{"pending, and started", pod("a", inPhase(corev1.PodPending), started), true},
		{"ended", pod("a", inPhase(corev1.PodFailed), started), false},
	} {
		if got := HasRun(tt.pod); got != tt.want {
			t.Errorf("%s: has run is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestWhoIsMissing holds that a pod counts as missing if the backend should have it, or did not find it for the stop.
func TestWhoIsMissing(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	stopping := asked(accepted(running), time.Second, 1, true)
	unknown := accepted(running)
	unknown.StopAskedAt, unknown.StopMissing = now, true
	refused := unknown
	refused.Accepted = false
	for _, tt := range []struct {
		name             string
		api              *corev1.Pod
		sent             Sent
		failure          *PodFailure
		expected, missed bool
	}{
		{"accepted", pod("a"), accepted(pod("a")), nil, true, true},
		{"never given", pod("a"), Sent{UID: "a"}, nil, false, false},
		{"run before a restart", running, Sent{UID: "a"}, nil, true, true},
		{"lost, and to be created again", running, Sent{UID: "a", Recreate: true}, nil, false, false},
		{"created again", running, Sent{UID: "a", Recreate: true, Accepted: true}, nil, true, true},
		{"ended", pod("a", inPhase(corev1.PodFailed)), accepted(running), nil, false, false},
		{"deleted", pod("a", deleting(1)), accepted(running), nil, false, false},
		{"failed", running, accepted(running), &PodFailure{Reason: ReasonDeadline}, false, false},
		{"asked to stop", running, stopping, nil, false, false},
		{"not there when it was to stop", pod("a", deleting(1)), unknown, nil, false, true},
		{"not there when it was to stop after its failure", running, unknown, &PodFailure{Reason: ReasonDeadline}, false, true},
		{"not there when it was to stop, as it was lost", running, unknown, &PodFailure{Reason: ReasonLost}, false, false},
		{"not there when it was to stop, and ended", pod("a", deleting(1), inPhase(corev1.PodFailed)), unknown, nil, false, false},
		{"not there when it was to stop, and never accepted", pod("a", deleting(1)), refused, nil, false, false},
	} {
		if got := Expected(tt.api, &tt.sent, tt.failure); got != tt.expected {
			t.Errorf("%s: expected is %v, want %v", tt.name, got, tt.expected)
		}
		if got := Missed(tt.api, &tt.sent, tt.failure); got != tt.missed {
			t.Errorf("%s: missed is %v, want %v", tt.name, got, tt.missed)
		}
	}
}

func TestYoung(t *testing.T) {
	given := Sent{Accepted: true, AcceptedAt: now}
	unaccepted, shown := given, given
	unaccepted.Accepted, shown.Shown = false, true
	for _, tt := range []struct {
		name  string
		sent  Sent
		after time.Duration
		want  bool
	}{
		{"accepted a moment ago", given, time.Second, true},
		{"accepted for long enough", given, 2 * time.Second, false},
		{"not accepted", unaccepted, time.Second, false},
		{"shown", shown, time.Second, false},
	} {
		if got := Young(&tt.sent, 2*time.Second, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: young is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestLostPodEndsByItsPolicy holds that a lost pod is created again, unless its policy forbids a second run.
func TestLostPodEndsByItsPolicy(t *testing.T) {
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	lost := func(accepted bool) Sent {
		return Sent{UID: "a", Attempted: true, Accepted: accepted, MissingSince: now.Add(-time.Minute)}
	}
	for _, tt := range []struct {
		name string
		api  *corev1.Pod
		sent Sent
		want Step
	}{
		{"it always restarts", pod("a", inPhase(corev1.PodRunning)), lost(true), Recreate},
		{"it never restarts, and has run", pod("a", never, inPhase(corev1.PodRunning)), lost(false), Fail},
		{"it never restarts, and was accepted", pod("a", never, inPhase(corev1.PodPending)), lost(true), Fail},
		{"it never restarts, and nobody saw it run", pod("a", never, inPhase(corev1.PodPending), started), lost(false), Recreate},
	} {
		f := given{API: tt.api, Sent: tt.sent}.facts()
		d := Next(&f)
		if d.Step != tt.want {
			t.Errorf("%s: got step %d, want %d", tt.name, d.Step, tt.want)
		}
	}
}

// TestReportedPodIsNotCreated holds that a pod is not created if the provider has reported it since a restart, even if the backend does not
// show it.
func TestReportedPodIsNotCreated(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent Sent
		runs bool
		want Step
	}{
		{"new", Sent{UID: "a"}, false, Create},
		{"made before the restart", Sent{UID: "a"}, true, Missing},
		{"made before the restart, and lost", Sent{UID: "a", MissingSince: now.Add(-time.Minute)}, true, Recreate},
		{"lost, and to be created again", Sent{UID: "a", Recreate: true}, true, Create},
		{"being made, which failed", Sent{UID: "a", Attempted: true}, true, Create},
	} {
		f := given{API: pod("a"), Sent: tt.sent}.facts()
		if tt.runs {
			f.Reported = ReportedAlive
		}
		if d := Next(&f); d.Step != tt.want {
			t.Errorf("%s: got step %d, want %d", tt.name, d.Step, tt.want)
		}
	}
}
