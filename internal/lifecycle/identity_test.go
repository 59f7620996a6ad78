// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestWantedPodAmongOthers checks decisions while the backend has other pods under the name of the wanted one.
func TestWantedPodAmongOthers(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	own, wanted, doomed := pod("b", inPhase(corev1.PodRunning)), pod("b"), pod("b", deleting(1))
	stopped := asked(accepted(running), time.Second, 10, true)
	tried := func(ago time.Duration) Sent { return Sent{UID: "b", Attempted: true, AttemptedAt: now.Add(-ago)} }
	missingFor := func(ago time.Duration) Sent { s := accepted(own); s.MissingSince = now.Add(-ago); return s }
	withOwn := func(f *Facts) { f.Own = own }
	left := func(f *Facts) { f.Others[0].Asked = now.Add(-time.Hour) }
	omitted := func(f *Facts) { left(f); f.Doubtful = true }
	for _, tt := range []struct {
		name    string
		facts   given
		change  func(*Facts)
		want    Step
		backend types.UID     // "": none
		again   time.Duration // 0: any
	}{
		{name: "the wanted pod runs beside one that has ended", facts: given{API: wanted, Backend: failed}, change: withOwn, want: Adopt, backend: "b"},
		{name: "only one that has ended is there", facts: given{API: wanted, Backend: failed}, want: Wait, backend: "a"},
		{name: "the wanted pod must stop, and is behind another", facts: given{API: doomed, Backend: running}, change: withOwn, want: Stop, backend: "b"},
		{name: "the wanted pod stops, and another one hides it", facts: given{API: doomed, Sent: asked(accepted(own), 2*time.Second, 1, true), Backend: running}, want: Rest, backend: "a"},
		{name: "the wanted pod stops, and another one hid it for long", facts: given{API: doomed, Sent: asked(accepted(own), 11*time.Second, 1, true), Backend: running}, want: Stopped},
		{name: "the wanted pod has failed, and is behind another", facts: given{API: own, Backend: running, Failure: &PodFailure{}}, change: withOwn, want: Stop, backend: "b"},
		{name: "the wanted pod is missing, and another one is due", facts: given{API: own, Sent: missingFor(4 * time.Second), Backend: running}, change: func(f *Facts) { f.Others[0].Since = now.Add(-time.Hour) }, want: DeleteOrphan, backend: "a", again: 6 * time.Second},
		{name: "the wanted pod is lost, and another one stops", facts: given{API: own, Sent: accepted(own), Backend: running}, want: Missing},

		{name: "a pod that has left is kept", facts: given{Sent: stopped, Backend: failed}, want: Forget},
		{name: "a pod that has left is kept, and another one runs", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Others = ShowOther(f.Others, own, &f.Sent, now) }, want: Wait, backend: "b"},
		{name: "a pod that has left is kept, and another one has ended", facts: given{Sent: stopped, Backend: failed},
			change: func(f *Facts) { f.Others = ShowOther(f.Others, pod("b", inPhase(corev1.PodFailed)), &f.Sent, now) }, want: Wait, backend: "b"},
		{name: "a stopped pod runs still", facts: given{Sent: stopped, Backend: running}, want: Wait, backend: "a"},
		{name: "a pod that has left does not keep the next one out", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: left, want: Create},
		{name: "a list lacks the pod that GetPod has, and so the wanted one perhaps", facts: given{API: wanted, Sent: tried(29 * time.Second), Backend: failed}, change: omitted, want: Wait},
		{name: "a list lacks the pod that GetPod has, and the wanted one must have shown", facts: given{API: wanted, Sent: tried(30 * time.Second), Backend: failed}, change: omitted, want: Create},
		{name: "a list has the pod that GetPod has, and not the wanted one", facts: given{API: wanted, Sent: tried(time.Second), Backend: failed}, change: left, want: Create},
		{name: "a list lacks the pod that GetPod has, and the wanted one was not tried", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: omitted, want: Create},
		{name: "a list lacks the pod that GetPod has, and has the wanted one", facts: given{API: wanted, Sent: tried(time.Second), Backend: failed}, change: withOwn, want: Adopt, backend: "b"},
		{name: "a list lacks the pod that GetPod has, and the wanted one was accepted", facts: given{API: wanted, Sent: func() Sent { s := tried(time.Second); s.Accepted = true; return s }(), Backend: failed}, change: omitted, want: Missing},
		{name: "a list lacks the pod that GetPod has, and the wanted one is deleted", facts: given{API: doomed, Sent: tried(time.Second), Backend: failed}, change: omitted, want: Stop},
		{name: "a list lacks the pod that GetPod has, and the wanted one perhaps that was made before a restart", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed, Earlier: true, Began: now.Add(-29 * time.Second)}, change: omitted, want: Wait},
		{name: "a list lacks the pod that GetPod has, and the wanted one of before a restart must have shown", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed, Earlier: true, Began: now.Add(-30 * time.Second)}, change: omitted, want: Create},
		{name: "another has left, and the wanted one has ended, beside a third", facts: given{API: pod("b", inPhase(corev1.PodFailed)), Sent: Sent{UID: "b"}, Backend: failed},
			change: func(f *Facts) {
				left(f)
				f.Over, f.Suspect = true, true
				f.Others = ShowOther(f.Others, pod("c"), &f.Sent, now)
			}, want: Rest, backend: "c"},
		{name: "the wanted one has stopped and is held, beside an orphan", facts: given{API: doomed, Sent: Sent{UID: "b"}, Backend: running},
			change: func(f *Facts) { f.Stopped, f.Others[0].Since = true, now.Add(-time.Minute) }, want: DeleteOrphan, backend: "a"},
		{name: "the wanted one has stopped and is held", facts: given{API: doomed, Sent: asked(accepted(own), time.Minute, 1, true)}, change: func(f *Facts) { f.Stopped = true }, want: Rest},
		{name: "the wanted one has stopped, and runs again", facts: given{API: doomed, Sent: asked(accepted(own), time.Minute, 1, true), Backend: own}, change: func(f *Facts) { f.Stopped = true }, want: Stop, backend: "b"},
		{name: "the wanted one has ended and is kept", facts: given{API: failed, Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Over, f.Suspect = true, true }, want: Rest, backend: "a"},
		{name: "the wanted one is kept after its stop, and is no orphan", facts: given{API: pod("a", deleting(1)), Sent: stopped}, change: func(f *Facts) {
			f.untake(Look)
			f.Stopped, f.Reported, f.Others = true, ReportedEnded, []Other{{UID: "a", Pod: running, Since: now.Add(-time.Hour)}}
		}, want: Rest},
		{name: "a pod that has left does not keep the next one out, nor does the wanted one wait for it", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: left, want: Create},
		{name: "another one beside a pod that has left keeps the next one out", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: func(f *Facts) { left(f); f.Others = ShowOther(f.Others, pod("c"), &f.Sent, now) }, want: Wait, backend: "c"},
		{name: "an orphan has ended, and was not asked to", facts: given{Backend: failed}, want: Wait, backend: "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if tt.change != nil {
				tt.change(&f)
			}
			d := Next(&f)
			uid := types.UID("")
			if d.Backend != nil {
				uid = d.Backend.UID
			}
			if d.Step != tt.want || uid != tt.backend || tt.again > 0 && d.Again != tt.again {
				t.Errorf("got step %v about %q again %v, want %v about %q again %v", d.Step, uid, d.Again, tt.want, tt.backend, tt.again)
			}
		})
	}
}

// TestDoubtfulAbsence holds that a list alone is no evidence if the backend returns another pod for the name, because it may also have the
// wanted pod.
func TestDoubtfulAbsence(t *testing.T) {
	failed := pod("a", inPhase(corev1.PodFailed))
	for name, tt := range map[string]struct {
		facts given
		own   *corev1.Pod
		want  bool
	}{
		"a clear answer":                 {given{API: pod("b")}, nil, false},
		"no clear answer":                {given{API: pod("b"), Doubtful: true}, nil, true},
		"another that has ended":         {given{API: pod("b"), Backend: failed}, nil, true},
		"another, and the wanted one":    {given{API: pod("b"), Backend: failed}, pod("b"), false},
		"another that runs":              {given{API: pod("b"), Backend: pod("a")}, nil, false},
		"the wanted one, that has ended": {given{API: pod("a"), Backend: failed}, failed, false},
	} {
		f := tt.facts.facts()
		f.Own = tt.own
		if got := f.DoubtfulAbsence(); got != tt.want {
			t.Errorf("%s: doubtful is %v, want %v", name, got, tt.want)
		}
	}
}
