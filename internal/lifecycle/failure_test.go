// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestDeadlineIsLookedAt holds that every decision is repeated at the active deadline of the pod.
func TestDeadlineIsLookedAt(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	missing := accepted(running)
	missing.MissingSince = now.Add(-4 * time.Second)
	for _, tt := range []struct {
		name   string
		facts  given
		in     time.Duration
		again  time.Duration
		reason string
	}{
		{"at rest", given{API: running, Sent: accepted(running)}, time.Minute, time.Minute, ""},
		{"missing", given{API: running, Sent: missing}, time.Second, time.Second, ""},
		{"over", given{API: running, Sent: accepted(running)}, 0, 0, ReasonDeadline},
		{"of a pod that has ended", given{API: pod("a", inPhase(corev1.PodFailed))}, time.Minute, 0, ""},
		{"of a pod that is reported as ended", given{API: running, Sent: accepted(running), Finished: true}, time.Minute, 0, ""},
		{"of a pod that is gone", given{}, time.Minute, 0, ""},
		{"of a deleted pod", given{API: pod("a", deleting(1))}, time.Minute, 0, ""},
		{"of a failed pod", given{API: pod("a"), Failure: &PodFailure{}}, time.Minute, 0, ""},
	} {
		f := tt.facts.facts()
		limits := Limits{Deadline: now.Add(tt.in)}
		if failure := limits.NextFailure(&f); (failure != nil) != (tt.reason != "") || failure != nil && (failure.Reason != tt.reason || !failure.Normal) {
			t.Errorf("%s: got %+v", tt.name, failure)
		}
		if again := (&Limits{}).UntilDeadline(&f); again != 0 {
			t.Errorf("%s, without a deadline: got another look after %v", tt.name, again)
		}
		if again := limits.UntilDeadline(&f); again != tt.again {
			t.Errorf("%s: got another look after %v, want %v", tt.name, again, tt.again)
		}
	}
}

// TestTheNodeFailsPods checks the failures of the node: their reason, message and time.
func TestTheNodeFailsPods(t *testing.T) {
	windows := func(phase corev1.PodPhase) *corev1.Pod {
		return pod("a", inPhase(phase), func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} })
	}
	running := pod("a", inPhase(corev1.PodRunning))
	turn := func(l *Limits) { l.Turn = now.Add(20 * time.Second) }
	grace := int64(5)
	for _, tt := range []struct {
		name   string
		facts  given
		change func(*Limits)
		want   string // "": no failure
		normal bool
	}{
		{"drained before its start", given{API: pod("a")}, func(l *Limits) { l.Draining = true }, reasonRefused, false},
		{"drained before its start, as known", given{API: pod("a"), Failure: Refuse()}, func(l *Limits) { l.Draining = true }, "", false},
		{"drained and deleted before its start", given{API: pod("a", deleting(1))}, func(l *Limits) { l.Draining = true }, "", false},
		{"drained before its turn", given{API: running, Sent: accepted(running)}, func(l *Limits) { l.Draining = true }, "", false},
		{"drained in its turn", given{API: running, Sent: accepted(running)}, turn, reasonShutdown, true},
		{"drained in its turn while it is deleted", given{API: pod("a", deleting(100)), Sent: accepted(running)}, turn, reasonShutdown, true},
		{"drained in its turn, and failed before", given{API: running, Sent: accepted(running), Failure: &PodFailure{Reason: "other"}}, turn, "other", true},
		{"drained in its turn, as known", given{API: running, Sent: accepted(running), Failure: &PodFailure{Grace: &grace}}, turn, "", false},
		{"drained, and ended", given{API: pod("a", inPhase(corev1.PodFailed)), Sent: accepted(running)}, turn, "", false},
		{"drained, and reported as ended", given{API: running, Sent: accepted(running), Finished: true}, turn, "", false},
		{"of another system", given{API: windows("")}, func(l *Limits) { l.OS = "linux" }, ReasonWrongOS, false},
		{"of another system, and running", given{API: windows(corev1.PodRunning)}, func(l *Limits) { l.OS = "linux" }, "", false},
		{"of another system, and given to the backend", given{API: windows(""), Sent: Sent{UID: "a", Attempted: true}}, func(l *Limits) { l.OS = "linux" }, "", false},
		{"of another system than an unknown one", given{API: windows("")}, nil, "", false},
		{"of another system, and pending", given{API: windows(corev1.PodPending)}, func(l *Limits) { l.OS = "linux" }, ReasonWrongOS, false},
		{"of the node's system", given{API: windows("")}, func(l *Limits) { l.OS = "windows" }, "", false},
		{"not started, in its turn", given{API: pod("a")}, turn, "", false},
		{"past its deadline, and deleted", given{API: pod("a", deleting(1)), Sent: accepted(running)}, func(l *Limits) { l.Deadline = now }, "", false},
		{"past its deadline", given{API: running, Sent: accepted(running)}, func(l *Limits) { l.Deadline = now }, ReasonDeadline, true},
		{"past its deadline, and failed", given{API: running, Sent: accepted(running), Failure: &PodFailure{}}, func(l *Limits) { l.Deadline = now }, "", false},
		{"before its deadline", given{API: running, Sent: accepted(running)}, func(l *Limits) { l.Deadline = now.Add(1) }, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, limits := tt.facts.facts(), Limits{}
			if tt.change != nil {
				tt.change(&limits)
			}
			failure := limits.NextFailure(&f)
			if (failure != nil) != (tt.want != "") || failure != nil && (failure.Reason != tt.want || failure.Normal != tt.normal) {
				t.Errorf("got %+v, want %q", failure, tt.want)
			}
			if failure != nil && failure.Message == "" && tt.facts.Failure == nil {
				t.Errorf("got %+v, want a message", failure)
			}
		})
	}
}
