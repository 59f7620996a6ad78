// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestDeadlineIsLookedAt: whatever is decided meanwhile, the pod is looked at again when its active time is over.
func TestDeadlineIsLookedAt(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	missing := accepted(running)
	missing.MissingSince = now.Add(-4 * time.Second)
	for _, tt := range []struct {
		name   string
		facts  given
		in     time.Duration
		want   Step
		again  time.Duration
		reason string
	}{
		{"at rest", given{API: running, Sent: accepted(running)}, time.Minute, Rest, time.Minute, ""},
		{"before another look", given{API: running, Sent: missing}, time.Second, Rest, time.Second, ""},
		{"after another look", given{API: running, Sent: missing}, time.Minute, Rest, 6 * time.Second, ""},
		{"over", given{API: running, Sent: accepted(running)}, 0, Fail, 0, ReasonDeadline},
		{"of a pod that has ended", given{API: pod("a", inPhase(corev1.PodFailed))}, time.Minute, Rest, 0, ""},
		{"of a pod that is reported as ended", given{API: running, Sent: accepted(running), Finished: true}, time.Minute, Rest, 0, ""},
		{"of a deleted pod", given{API: pod("a", deleting(1))}, time.Minute, Stopped, 0, ""},
		{"of a failed pod", given{API: pod("a"), Failure: &PodFailure{}}, time.Minute, Stopped, 0, ""},
	} {
		f := tt.facts.facts()
		f.Deadline, f.Backend = now.Add(tt.in), tt.facts.API
		if !f.Sent.MissingSince.IsZero() || tt.want == Stopped {
			f.Backend = nil
		}
		d := Next(&f)
		if d.Step != tt.want || d.Again != tt.again {
			t.Errorf("%s: got step %d again %v, want %d again %v", tt.name, d.Step, d.Again, tt.want, tt.again)
		}
		if tt.reason != "" && (d.Failure.Reason != tt.reason || !d.Failure.Normal) {
			t.Errorf("%s: got %+v", tt.name, d.Failure)
		}
	}
}

// TestTheNodeFailsPods: what a kubelet would say, and when.
func TestTheNodeFailsPods(t *testing.T) {
	windows := func(phase corev1.PodPhase) *corev1.Pod {
		return pod("a", inPhase(phase), func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} })
	}
	running := pod("a", inPhase(corev1.PodRunning))
	turn := func(f *Facts) { f.Turn = now.Add(20 * time.Second) }
	grace := int64(5)
	for _, tt := range []struct {
		name   string
		facts  given
		change func(*Facts)
		want   string // ""; no failure
		normal bool
	}{
		{"drained before its start", given{API: pod("a")}, func(f *Facts) { f.Draining = true }, reasonRefused, false},
		{"drained before its start, as known", given{API: pod("a"), Failure: Refuse()}, func(f *Facts) { f.Draining = true }, "", false},
		{"drained and deleted before its start", given{API: pod("a", deleting(1))}, func(f *Facts) { f.Draining = true }, "", false},
		{"drained before its turn", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.Draining = true }, "", false},
		{"drained in its turn", given{API: running, Sent: accepted(running)}, turn, reasonShutdown, true},
		{"drained in its turn while it is deleted", given{API: pod("a", deleting(100)), Sent: accepted(running)}, turn, reasonShutdown, true},
		{"drained in its turn, and failed before", given{API: running, Sent: accepted(running), Failure: &PodFailure{Reason: "other"}}, turn, "other", true},
		{"drained in its turn, as known", given{API: running, Sent: accepted(running), Failure: &PodFailure{Grace: &grace}}, turn, "", false},
		{"drained, and ended", given{API: pod("a", inPhase(corev1.PodFailed)), Sent: accepted(running)}, turn, "", false},
		{"drained, and reported as ended", given{API: running, Sent: accepted(running), Finished: true}, turn, "", false},
		{"of another system", given{API: windows("")}, func(f *Facts) { f.OS = "linux" }, ReasonWrongOS, false},
		{"of another system, and running", given{API: windows(corev1.PodRunning)}, func(f *Facts) { f.OS = "linux" }, "", false},
		{"of another system, and given to the backend", given{API: windows(""), Sent: Sent{UID: "a", Attempted: true}}, func(f *Facts) { f.OS = "linux" }, "", false},
		{"of another system than an unknown one", given{API: windows("")}, nil, "", false},
		{"of another system, and pending", given{API: windows(corev1.PodPending)}, func(f *Facts) { f.OS = "linux" }, ReasonWrongOS, false},
		{"of the node's system", given{API: windows("")}, func(f *Facts) { f.OS = "windows" }, "", false},
		{"not started, in its turn", given{API: pod("a")}, turn, "", false},
		{"without room", given{API: pod("a")}, func(f *Facts) { f.NoRoom = &PodFailure{Reason: "OutOfcpu", Message: "m"} }, "OutOfcpu", false},
		{"asks for what the backend lacks", given{API: pod("a")}, func(f *Facts) { f.Unsupported, f.FailUnsupported = "m", true }, ReasonUnsupported, false},
		{"asks for what the backend lacks, and waits", given{API: pod("a")}, func(f *Facts) { f.Unsupported = "m" }, "", false},
		{"asks for what the backend has", given{API: pod("a")}, func(f *Facts) { f.FailUnsupported = true }, "", false},
		{"past its deadline, and deleted", given{API: pod("a", deleting(1)), Sent: accepted(running)}, func(f *Facts) { f.Deadline = now }, "", false},
		{"past its deadline", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.Deadline = now }, ReasonDeadline, true},
		{"past its deadline, and failed", given{API: running, Sent: accepted(running), Failure: &PodFailure{}}, func(f *Facts) { f.Deadline = now }, "", false},
		{"before its deadline", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.Deadline = now.Add(1) }, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if tt.change != nil {
				tt.change(&f)
			}
			d := Next(&f)
			if (d.Step == Fail) != (tt.want != "") || d.Failure != nil && (d.Failure.Reason != tt.want || d.Failure.Normal != tt.normal) {
				t.Errorf("got step %d with %+v, want %q", d.Step, d.Failure, tt.want)
			}
			if d.Failure != nil && d.Failure.Message == "" && tt.facts.Failure == nil {
				t.Errorf("got %+v, want a message", d.Failure)
			}
		})
	}
}
