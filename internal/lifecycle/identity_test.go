// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestIdentity: by its name the backend may tell of another pod than the wanted one.
func TestIdentity(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	own, wanted := pod("b", inPhase(corev1.PodRunning)), pod("b")
	stopped := asked(accepted(running), time.Second, 10, true)
	tried := func(ago time.Duration) Sent { return Sent{UID: "b", Attempted: true, AttemptedAt: now.Add(-ago)} }
	for _, tt := range []struct {
		name    string
		facts   given
		change  func(*Facts)
		want    Step
		backend types.UID // "": none
	}{
		{name: "the wanted pod runs beside one that has ended", facts: given{API: wanted, Backend: failed}, change: func(f *Facts) { f.Pods = []*corev1.Pod{failed, own} }, want: Adopt, backend: "b"},
		{name: "only one that has ended is there", facts: given{API: wanted, Backend: failed}, want: BeginOrphan, backend: "a"},
		{name: "the wanted pod must stop, and is behind another", facts: given{API: pod("b", deleting(1)), Backend: running}, change: func(f *Facts) { f.Pods = []*corev1.Pod{running, own} }, want: Stop, backend: "b"},
		{name: "the wanted pod stops, and another one hides it", facts: given{API: pod("b", deleting(1)), Sent: asked(accepted(own), 2*time.Second, 1, true), Backend: running}, want: Rest},
		{name: "the wanted pod stops, and another one hid it for long", facts: given{API: pod("b", deleting(1)), Sent: asked(accepted(own), 11*time.Second, 1, true), Backend: running}, want: Stopped},
		{name: "the wanted pod has failed, and is behind another", facts: given{API: own, Backend: running, Failure: &PodFailure{}}, change: func(f *Facts) { f.Pods = []*corev1.Pod{running, own} }, want: Stop, backend: "b"},

		{name: "what has left is kept, as known", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Release},
		{name: "what has left is kept, and another one runs", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{failed, own} }, want: BeginOrphan, backend: "b"},
		{name: "what has left is kept, and another one has ended", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) {
			f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{failed, pod("b", inPhase(corev1.PodFailed))}
		}, want: BeginOrphan, backend: "b"},
		{name: "what has left is kept, and so is another one", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) {
			f.Left, f.Pods = []types.UID{"b", "a"}, []*corev1.Pod{failed, pod("b", inPhase(corev1.PodFailed))}
		}, want: Release},
		{name: "what has left is kept, and one of another name runs", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) {
			f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{failed, pod("b", func(p *corev1.Pod) { p.Name = "q" }), pod("b", func(p *corev1.Pod) { p.Namespace = "q" })}
		}, want: Release},
		{name: "what was stopped runs still", facts: given{Sent: stopped, Backend: running}, want: BeginOrphan, backend: "a"},
		{name: "what has left does not keep the next one out", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Create},
		{name: "a list lacks what GetPod has, and so the wanted one perhaps", facts: given{API: wanted, Sent: tried(29 * time.Second), Backend: failed}, want: Wait},
		{name: "a list lacks what GetPod has, and the wanted one must have shown", facts: given{API: wanted, Sent: tried(30 * time.Second), Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Create},
		{name: "a list has what GetPod has, and not the wanted one", facts: given{API: wanted, Sent: tried(time.Second), Backend: failed}, change: func(f *Facts) { f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{failed} }, want: Create},
		{name: "a list lacks what GetPod has, and the wanted one was not tried", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Create},
		{name: "a list lacks what GetPod has, and has the wanted one", facts: given{API: wanted, Sent: tried(time.Second), Backend: failed}, change: func(f *Facts) { f.Pods = []*corev1.Pod{own} }, want: Adopt, backend: "b"},
		{name: "a list lacks what GetPod has, and the wanted one was accepted", facts: given{API: wanted, Sent: func() Sent { s := tried(time.Second); s.Accepted = true; return s }(), Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Missing},
		{name: "a list lacks what GetPod has, and the wanted one is deleted", facts: given{API: pod("b", deleting(1)), Sent: tried(time.Second), Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Stop},
		{name: "a list lacks what GetPod has, and the wanted one perhaps that was made before a restart", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed, Earlier: true, Began: now.Add(-29 * time.Second)}, want: Wait},
		{name: "a list lacks what GetPod has, and the wanted one of before a restart must have shown", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed, Earlier: true, Began: now.Add(-30 * time.Second)}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, want: Create},
		{name: "another has left, and the wanted one has ended", facts: given{API: pod("b", inPhase(corev1.PodFailed)), Sent: Sent{UID: "b"}, Backend: failed},
			change: func(f *Facts) {
				f.Over, f.Suspect, f.Left, f.Pods = true, true, []types.UID{"a"}, []*corev1.Pod{failed, pod("c")}
			}, want: BeginOrphan, backend: "c"},
		{name: "another has left, and the known one of two orphans is meant, whatever the order of the list", facts: given{Backend: failed},
			change: func(f *Facts) {
				f.Orphan = Orphan{UID: "c", Since: now, Present: true}
				f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{pod("b"), failed, pod("c"), pod("d")}
			}, want: Wait, backend: "c"},
		{name: "another has left, and the wanted one has stopped and is held", facts: given{API: pod("b", deleting(1)), Sent: Sent{UID: "b"}, Backend: failed},
			change: func(f *Facts) {
				f.Stopped, f.Left, f.Pods = true, []types.UID{"a"}, []*corev1.Pod{failed, pod("c")}
			}, want: BeginOrphan, backend: "c"},
		{name: "the wanted one has ended and is kept", facts: given{API: failed, Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Over, f.Suspect, f.Left = true, true, []types.UID{"a"} }, want: Rest, backend: "a"},
		{name: "the wanted one has ended and is kept, and another one runs", facts: given{API: failed, Sent: stopped, Backend: failed},
			change: func(f *Facts) {
				f.Over, f.Suspect, f.Left, f.Pods = true, true, []types.UID{"a"}, []*corev1.Pod{failed, own}
			}, want: BeginOrphan, backend: "b"},
		{name: "what has left does not keep the next one out, nor does one beside it", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: func(f *Facts) { f.Left, f.Pods = []types.UID{"a"}, []*corev1.Pod{failed, pod("c")} }, want: Create},
		{name: "an orphan has ended, and was not asked to", facts: given{Backend: failed}, change: func(f *Facts) { f.Orphan = Orphan{UID: "a", Since: now, Present: true} }, want: Wait, backend: "a"},
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
			if d.Step != tt.want || uid != tt.backend {
				t.Errorf("got step %d about %q, want %d about %q", d.Step, uid, tt.want, tt.backend)
			}
		})
	}
}

// TestDoubtfulAbsence: who tells of another pod by the name may have the wanted one beside it, and a list alone is no evidence.
func TestDoubtfulAbsence(t *testing.T) {
	failed := pod("a", inPhase(corev1.PodFailed))
	for name, tt := range map[string]struct {
		facts given
		pods  []*corev1.Pod
		want  bool
	}{
		"a clear answer":                 {given{API: pod("b")}, nil, false},
		"no clear answer":                {given{API: pod("b"), Doubtful: true}, nil, true},
		"another that has ended":         {given{API: pod("b"), Backend: failed}, nil, true},
		"another, and the wanted one":    {given{API: pod("b"), Backend: failed}, []*corev1.Pod{pod("b")}, false},
		"another that runs":              {given{API: pod("b"), Backend: pod("a")}, nil, false},
		"the wanted one, that has ended": {given{API: pod("a"), Backend: failed}, nil, false},
	} {
		f := tt.facts.facts()
		f.Pods = tt.pods
		if got := f.DoubtfulAbsence(); got != tt.want {
			t.Errorf("%s: doubtful is %v, want %v", name, got, tt.want)
		}
	}
}

// TestNews: what a decision says beside its step.
func TestNews(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	orphan := Orphan{UID: "a", Since: now, Present: true}
	for _, tt := range []struct {
		name   string
		facts  given
		change func(*Facts)
		orphan OrphanNews
		shown  bool
		shared bool
	}{
		{name: "a pod at rest", facts: given{API: running, Sent: accepted(running)}, change: func(f *Facts) { f.untake(AskByName) }, orphan: OrphanGone},
		{name: "the wanted pod is there", facts: given{API: running, Backend: running}, orphan: OrphanGone, shown: true},
		{name: "the wanted pod is there, and seemed to be an orphan", facts: given{API: running, Backend: running}, change: func(f *Facts) { f.Orphan = orphan }, orphan: OrphanWanted, shown: true},
		{name: "it is not there", facts: given{API: running, Sent: accepted(running)}, orphan: OrphanGone},
		{name: "nobody answers", facts: given{API: pod("a", deleting(1))}, change: func(f *Facts) { f.Silent = true }},
		{name: "only the backend has it", facts: given{Backend: running}, change: func(f *Facts) { f.Orphan = orphan }},
		{name: "only the backend has another", facts: given{API: pod("b"), Backend: running}, change: func(f *Facts) { f.Orphan = orphan }, shown: true},
		{name: "the stop behind another", facts: given{API: pod("b", deleting(1)), Backend: running}, change: func(f *Facts) { f.Orphan = orphan }},
		{name: "wanted after all", facts: given{Backend: running}, change: func(f *Facts) { f.Orphan, f.Witnessed, f.Live = orphan, "a", pod("a") }, orphan: OrphanWanted},
		{name: "nothing is there", orphan: OrphanGone},
		{name: "what has left is there", facts: given{Sent: asked(accepted(running), 0, 1, true), Backend: failed}, change: func(f *Facts) { f.Left = []types.UID{"a"} }, orphan: OrphanGone},
		{name: "one that has ended has the name", facts: given{API: pod("b"), Backend: failed}, change: func(f *Facts) { f.untake(AskAll) }, shared: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if tt.change != nil {
				tt.change(&f)
			}
			if d := Next(&f); d.Orphan != tt.orphan || d.Shown != tt.shown || d.Shared != tt.shared {
				t.Errorf("got orphan %d, shown %v, shared %v, want %d, %v, %v", d.Orphan, d.Shown, d.Shared, tt.orphan, tt.shown, tt.shared)
			}
		})
	}
}
