// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestWhatIsAskedFirst: each question is a step of its own, and is asked only where the answer matters.
func TestWhatIsAskedFirst(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	lost := accepted(running)
	lost.MissingSince = now.Add(-time.Minute)
	never := pod("a", inPhase(corev1.PodRunning))
	never.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, tt := range []struct {
		name   string
		facts  given
		change func(*Facts)
		want   Step
	}{
		{"the backend, of a new pod", given{API: pod("a")}, func(f *Facts) { f.ByName = false }, AskByName},
		{"the backend, of a pod that only it may have", given{}, func(f *Facts) { f.ByName = false }, AskByName},
		{"nobody, of a pod that is gone on both sides", given{}, func(f *Facts) { f.ByName, f.Stopped = false, true }, Forget},
		{"the backend, of the older pod of one that is gone", given{}, func(f *Facts) { f.ByName, f.Stopped, f.Previous = false, true, "old" }, AskByName},
		{"the backend, of what it kept of one that is gone", given{}, func(f *Facts) { f.ByName, f.Stopped, f.Left = false, true, ptr("a") }, AskByName},
		{"the backend, of an orphan", given{}, func(f *Facts) { f.ByName, f.Stopped, f.Orphan.Present = false, true, true }, AskByName},
		{"nobody, of a pod that is at rest", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.ByName = false }, Rest},
		{"the backend, of a pod that is at rest and not in its list", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.ByName, f.Suspect = false, true }, AskByName},
		{"no more, as the backend turned out to lack a pod that was at rest", given{API: running, Sent: accepted(running)}, nil, Missing},
		{"no more, as the backend turned out to run a pod that had ended", given{API: failed, Sent: Sent{UID: "a"}, Backend: running}, func(f *Facts) { f.Over = true }, Stop},
		{"again, as it did not answer", given{API: pod("a")}, func(f *Facts) { f.Silent = true }, Retry},
		{"again, of an orphan", given{}, func(f *Facts) { f.Silent = true }, Retry},
		{"nobody, as a pod is to stop all the same", given{API: pod("a", deleting(1)), Sent: accepted(running)}, func(f *Facts) { f.Silent, f.Counted = true, false }, Stop},

		{"for all pods, as one has the name that has ended", given{API: pod("b"), Backend: failed}, func(f *Facts) { f.All = false }, AskAll},
		{"not for all pods, as one has the name that runs", given{API: pod("b"), Backend: running}, func(f *Facts) { f.All = false }, BeginOrphan},
		{"for all pods, as one must stop behind another", given{API: pod("b", deleting(1)), Backend: running}, func(f *Facts) { f.All = false }, AskAll},
		{"not for all pods, as the stop behind another is confirmed", given{API: pod("b", deleting(1)), Backend: running}, func(f *Facts) { f.All, f.Stopped = false, true }, BeginOrphan},
		{"for all pods, as one that has left may hide another", given{Sent: asked(accepted(running), time.Second, 10, true), Backend: failed}, func(f *Facts) { f.All, f.Left = false, ptr("a") }, AskAll},
		{"for all pods, as one that has left may hide another beside one that has ended", given{API: pod("b", inPhase(corev1.PodFailed)), Sent: Sent{UID: "b"}, Backend: failed},
			func(f *Facts) { f.All, f.Over, f.Suspect, f.Left = false, true, true, ptr("a") }, AskAll},

		{"whether many are missing", given{API: running, Sent: lost}, func(f *Facts) { f.Counted = false }, CountMissing},
		{"not whether many are missing, as there is no answer", given{API: pod("a", deleting(1)), Sent: lost}, func(f *Facts) { f.Counted, f.Silent = false, true }, Stop},
		{"the API server, of a lost pod", given{API: running, Sent: lost}, func(f *Facts) { f.ReadLive = false }, ReadLive},
		{"nobody, as the lost pod is gone from the API server", given{API: running, Sent: lost}, func(f *Facts) { f.Live = nil }, Wait},
		{"nobody, as the lost pod has another UID there", given{API: running, Sent: lost}, func(f *Facts) { f.Live = pod("b") }, Wait},
		{"nobody, as the lost pod has failed", given{API: never, Sent: lost}, nil, Fail},
		{"nobody, as the lost pod was given up for another one", given{API: never, Sent: Sent{UID: "a", MissingSince: lost.MissingSince}}, func(f *Facts) { f.API.Status.Phase = corev1.PodRunning }, Fail},

		{"what the node has room for", given{API: pod("a")}, func(f *Facts) { f.Admitted = false }, Admit},
		{"nobody, as the node has no room", given{API: pod("a")}, func(f *Facts) { f.Rejected = &PodFailure{Reason: "OutOfcpu"} }, Fail},
		{"nobody, as the backend does not have what it asks for", given{API: pod("a")}, func(f *Facts) { f.Unsupported = "no" }, Unsupported},
		{"nobody, as such pods fail", given{API: pod("a")}, func(f *Facts) { f.Unsupported, f.FailUnsupported = "no", true }, Fail},

		{"for the end that the backend shows", given{API: running, Sent: accepted(running), Backend: failed}, func(f *Facts) { f.EndTaken, f.Suspect = false, true }, TakeEnd},
		{"not for an end that was reported", given{API: running, Sent: accepted(running), Backend: failed, Finished: true}, func(f *Facts) { f.EndTaken, f.Suspect = false, true }, Rest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if tt.change != nil {
				tt.change(&f)
			}
			if got := Next(&f); got.Step != tt.want {
				t.Errorf("got step %d, want %d", got.Step, tt.want)
			}
		})
	}
}

func ptr(uid types.UID) *types.UID { return &uid }

// TestALookPrecedesAStopThatMayBeAnothers: the first stop asks nothing only where the pod alone is known under its name.
func TestALookPrecedesAStopThatMayBeAnothers(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", deleting(1)), Sent: accepted(pod("a"))}.facts()
		f.Sent.Shown, f.Runs, f.ByName = true, true, false
		return &f
	}
	if d := Next(known()); d.Step != Stop {
		t.Error("a pod that is reported as running is looked for before its stop")
	}
	for name, change := range map[string]func(*Facts){
		"an older pod of the name":        func(f *Facts) { f.Previous = "old" },
		"another pod of the name":         func(f *Facts) { f.Shared = true },
		"one that ended and is kept":      func(f *Facts) { f.Left = ptr("x") },
		"a second one":                    func(f *Facts) { f.Duplicate = &Duplicate{} },
		"one that only the backend has":   func(f *Facts) { f.Orphan.Present = true },
		"no report that it runs":          func(f *Facts) { f.Runs = false },
		"a pod that is not accepted":      func(f *Facts) { f.Sent.Accepted = false },
		"a pod that no list had":          func(f *Facts) { f.Sent.Shown = false },
		"a pod that is missing":           func(f *Facts) { f.Sent.MissingSince = now },
		"a pod that was asked for a stop": func(f *Facts) { f.Sent.StopAskedAt = now },
		"a pod whose stop was confirmed":  func(f *Facts) { f.Sent.StopAcked = true },
		"a pod that was not there":        func(f *Facts) { f.Sent.StopMissing = true },
		"another pod":                     func(f *Facts) { f.Sent.UID = "b" },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != AskByName {
			t.Errorf("%s: the pod is stopped without a look", name)
		}
	}
}

// TestNothingIsLeftButTheObject: a pod that has stopped is looked for no more only where nothing else can be under its name.
func TestNothingIsLeftButTheObject(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", deleting(1)), Sent: Sent{UID: "a"}, Finished: true}.facts()
		f.Stopped, f.ByName = true, false
		return &f
	}
	kept := known()
	kept.Left = ptr("a") // the backend keeps it after its end
	for _, f := range []*Facts{known(), kept} {
		if d := Next(f); d.Step != Rest {
			t.Errorf("a deleted pod that has stopped: got step %d, want Rest", d.Step)
		}
	}
	for name, change := range map[string]func(*Facts){
		"it is not deleted":             func(f *Facts) { f.API = pod("a") },
		"it is another pod":             func(f *Facts) { f.API = pod("b", deleting(1)) },
		"its stop is not confirmed":     func(f *Facts) { f.Stopped = false },
		"its end is not reported":       func(f *Facts) { f.Finished = false },
		"it was reported as running":    func(f *Facts) { f.Relapsed = true },
		"an older pod of the name":      func(f *Facts) { f.Previous = "old" },
		"another pod of the name":       func(f *Facts) { f.Shared = true },
		"a list lacks it":               func(f *Facts) { f.Suspect = true },
		"one that only the backend has": func(f *Facts) { f.Orphan.Present = true },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != AskByName {
			t.Errorf("%s: the pod is not looked for", name)
		}
	}
}

// TestWhatHasEndedIsAtRest until it is deleted, or there is a reason to look.
func TestWhatHasEndedIsAtRest(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", inPhase(corev1.PodFailed)), Sent: Sent{UID: "a"}}.facts()
		f.Over, f.ByName = true, false
		return &f
	}
	if d := Next(known()); d.Step != Rest || d.Orphan != OrphanWanted {
		t.Errorf("a pod that has ended: got %+v, want Rest", d)
	}
	for name, change := range map[string]func(*Facts){
		"the backend may run it": func(f *Facts) { f.Over = false },
		"it is another pod":      func(f *Facts) { f.API = pod("b", inPhase(corev1.PodFailed)) },
		"it is deleted":          func(f *Facts) { f.API = pod("a", deleting(1), inPhase(corev1.PodFailed)) },
		"it has not ended":       func(f *Facts) { f.API = pod("a", inPhase(corev1.PodRunning)) },
		"a list has it running":  func(f *Facts) { f.Suspect = true },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != AskByName {
			t.Errorf("%s: the pod is not looked for", name)
		}
	}
}

// TestIdentity: by its name the backend may tell of another pod than the wanted one.
func TestIdentity(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	own, wanted := pod("b", inPhase(corev1.PodRunning)), pod("b")
	stopped := asked(accepted(running), time.Second, 10, true)
	unnamed := func(phase corev1.PodPhase) *corev1.Pod { return pod("", inPhase(phase)) }
	for _, tt := range []struct {
		name    string
		facts   given
		change  func(*Facts)
		want    Step
		backend types.UID // "": none
		left    bool      // it is remembered that the backend keeps it
	}{
		{name: "the wanted pod runs beside one that has ended", facts: given{API: wanted, Backend: failed}, change: func(f *Facts) { f.Pods = []*corev1.Pod{failed, own} }, want: Adopt, backend: "b"},
		{name: "only one that has ended is there", facts: given{API: wanted, Backend: failed}, want: BeginOrphan, backend: "a"},
		{name: "the wanted pod must stop, and is behind another", facts: given{API: pod("b", deleting(1)), Backend: running}, change: func(f *Facts) { f.Pods = []*corev1.Pod{running, own} }, want: Stop, backend: "b"},
		{name: "the wanted pod has failed, and is behind another", facts: given{API: own, Backend: running, Failure: &PodFailure{}}, change: func(f *Facts) { f.Pods = []*corev1.Pod{running, own} }, want: Stop, backend: "b"},

		{name: "what has left is kept", facts: given{Sent: stopped, Backend: failed}, want: KeepLeft, backend: "a"},
		{name: "what has left is kept, as known", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Left = ptr("a") }, want: Release},
		{name: "what has left is kept, and another one runs", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Left, f.Pods = ptr("a"), []*corev1.Pod{failed, own} }, want: BeginOrphan, backend: "b"},
		{name: "what has left is kept, and another one has ended", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) { f.Left, f.Pods = ptr("a"), []*corev1.Pod{failed, pod("b", inPhase(corev1.PodFailed))} }, want: Release},
		{name: "what has left is kept, and one of another name runs", facts: given{Sent: stopped, Backend: failed}, change: func(f *Facts) {
			f.Left, f.Pods = ptr("a"), []*corev1.Pod{failed, pod("b", func(p *corev1.Pod) { p.Name = "q" }), pod("b", func(p *corev1.Pod) { p.Namespace = "q" }), pod("")}
		}, want: Release},
		{name: "what was stopped runs still", facts: given{Sent: stopped, Backend: running}, want: BeginOrphan, backend: "a"},
		{name: "what has left does not keep the next one out", facts: given{API: wanted, Sent: Sent{UID: "b"}, Backend: failed}, change: func(f *Facts) { f.Left = ptr("a") }, want: Create},
		{name: "an orphan has left", facts: given{Backend: failed}, change: func(f *Facts) { f.Orphan = Orphan{UID: "a", Asked: now, Present: true} }, want: KeepLeft, backend: "a"},
		{name: "an orphan has ended, and was not asked to", facts: given{Backend: failed}, change: func(f *Facts) { f.Orphan = Orphan{UID: "a", Since: now, Present: true} }, want: Wait, backend: "a"},

		{name: "a backend that keeps no UID has the last one", facts: given{Sent: Sent{UID: "a", Attempted: true}, Backend: unnamed(corev1.PodRunning)}, want: BeginOrphan, backend: "a"},
		{name: "a backend that keeps no UID has one that was never given to it", facts: given{Sent: Sent{UID: "a"}, Backend: unnamed(corev1.PodRunning)}, want: BeginOrphan},
		{name: "a backend that keeps no UID has the older one", facts: given{API: wanted, Sent: Sent{UID: "b", Attempted: true}, Backend: unnamed(corev1.PodRunning)}, change: func(f *Facts) { f.Previous = "a" }, want: BeginOrphan, backend: "a"},
		{name: "a backend that keeps no UID has the wanted one", facts: given{API: wanted, Sent: Sent{UID: "b", Attempted: true}, Backend: unnamed(corev1.PodRunning)}, want: Adopt},
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
		{name: "a pod at rest", facts: given{API: running, Sent: accepted(running)}, change: func(f *Facts) { f.ByName = false }, orphan: OrphanWanted},
		{name: "the wanted pod is there", facts: given{API: running, Backend: running}, orphan: OrphanWanted, shown: true},
		{name: "it is not there", facts: given{API: running, Sent: accepted(running)}, orphan: OrphanGone},
		{name: "nobody answers", facts: given{API: pod("a", deleting(1))}, change: func(f *Facts) { f.Silent = true }},
		{name: "only the backend has it", facts: given{Backend: running}, change: func(f *Facts) { f.Orphan = orphan }},
		{name: "only the backend has another", facts: given{API: pod("b"), Backend: running}, change: func(f *Facts) { f.Orphan = orphan }, shown: true},
		{name: "the stop behind another", facts: given{API: pod("b", deleting(1)), Backend: running}, change: func(f *Facts) { f.Orphan = orphan }},
		{name: "wanted after all", facts: given{Backend: running}, change: func(f *Facts) { f.Orphan, f.Witnessed, f.Live = orphan, "a", pod("a") }, orphan: OrphanWanted},
		{name: "nothing is there", orphan: OrphanGone},
		{name: "what has left is there", facts: given{Sent: asked(accepted(running), 0, 1, true), Backend: failed}, change: func(f *Facts) { f.Left = ptr("a") }, orphan: OrphanGone},
		{name: "one that has ended has the name", facts: given{API: pod("b"), Backend: failed}, change: func(f *Facts) { f.All = false }, shared: true},
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

// TestOrphanIsDeletedOnEvidence: it is one for a while, there are not many, and a live read says so.
func TestOrphanIsDeletedOnEvidence(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	at := func(ago time.Duration) Orphan { return Orphan{UID: "a", Since: now.Add(-ago), Present: true} }
	stopping := func(ago time.Duration) Orphan {
		o := at(ago)
		o.Asked = now.Add(-ago)
		return o
	}
	newer, created := pod("b"), pod("a", inPhase(corev1.PodRunning))
	created.CreationTimestamp, newer.CreationTimestamp = metav1.Time{Time: now.Add(-time.Hour)}, metav1.Time{Time: now.Add(-time.Minute)}
	for _, tt := range []struct {
		name    string
		api     *corev1.Pod
		backend *corev1.Pod
		sent    Sent
		orphan  Orphan
		change  func(*Facts)
		want    Step
		again   time.Duration
	}{
		{name: "seen for the first time", backend: running, want: BeginOrphan},
		{name: "seen instead of another one", backend: running, orphan: Orphan{UID: "z", Present: true}, want: BeginOrphan},
		{name: "not counted", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Counted = false }, want: CountOrphan},
		{name: "a moment ago", backend: running, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "for long", backend: running, orphan: at(10 * time.Second), want: DeleteOrphan},
		{name: "for long, and ended", backend: failed, orphan: at(10 * time.Second), change: func(f *Facts) { f.Held = time.Hour }, want: DeleteOrphan},
		{name: "one that this process ran", backend: running, sent: accepted(running), orphan: at(time.Second), want: Wait, again: time.Second},
		{name: "one that this process ran, for long", backend: running, sent: accepted(running), orphan: at(2 * time.Second), want: DeleteOrphan},
		{name: "the older one of the name", api: pod("b"), backend: running, orphan: at(time.Second), change: func(f *Facts) { f.Previous = "a" }, want: Wait, again: time.Second},
		{name: "one of many", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Held = time.Second }, want: Wait, again: time.Second},
		{name: "one of many, for long", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Held = time.Hour }, want: Wait, again: time.Minute},
		{name: "its deletion was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Witnessed, f.Held = "a", time.Hour }, want: DeleteOrphan},
		{name: "the deletion of another was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Witnessed = "b" }, want: Wait, again: 10 * time.Second},
		{name: "a newer one has its name", api: newer, backend: created, orphan: at(0), want: DeleteOrphan},
		{name: "an older one has its name", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp.Time = now.Add(-2 * time.Hour) }), backend: created, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "one without a time has its name", api: newer, backend: running, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "not read", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.ReadLive = false }, want: ReadLive},
		{name: "it is in the API server", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("a") }, want: Wait, again: 10 * time.Second},
		{name: "another one is", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("b") }, want: DeleteOrphan},
		{name: "one is, and the backend keeps no UID", backend: pod(""), orphan: Orphan{Present: true}, change: func(f *Facts) { f.Live = pod("b") }, want: Wait, again: 10 * time.Second},
		{name: "it is stopping", backend: running, orphan: stopping(4 * time.Second), want: Wait, again: 2 * time.Second},
		{name: "it was asked to stop a moment ago", backend: running, orphan: stopping(0), want: Wait, again: ReportedWithin},
		{name: "it is stopping for long", backend: running, orphan: stopping(39 * time.Second), want: Wait, again: 10 * time.Second},
		{name: "it does not stop", backend: running, orphan: stopping(40 * time.Second), want: DeleteOrphan},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: tt.api, Backend: tt.backend, Sent: tt.sent}.facts()
			f.Orphan, f.Live = tt.orphan, nil
			if tt.change != nil {
				tt.change(&f)
			}
			if d := Next(&f); d.Step != tt.want || d.Again != tt.again {
				t.Errorf("got step %d again %v, want %d again %v", d.Step, d.Again, tt.want, tt.again)
			}
		})
	}
	stopped := asked(accepted(running), time.Minute, 1, true)
	if o := NewOrphan(running, &stopped, now); o != (Orphan{UID: "a", Since: now, Asked: stopped.StopAskedAt, Present: true}) {
		t.Errorf("got %+v for a pod whose stop was acknowledged before", o)
	}
	if o := NewOrphan(pod("b"), &stopped, now); !o.Asked.IsZero() {
		t.Errorf("got %+v for a pod that was not asked to stop", o)
	}
}

// TestDuplicateIsStoppedOnEvidence: it is in two lists, and the wanted pod is in the API server.
func TestDuplicateIsStoppedOnEvidence(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	second := pod("b", inPhase(corev1.PodRunning))
	seen := func(since, newest time.Duration) *Duplicate {
		return &Duplicate{Pod: second, Since: now.Add(-since), Seen: now.Add(-newest)}
	}
	asked := func(ago time.Duration, tries int) DuplicateStops {
		return DuplicateStops{Pod: second, At: now.Add(-ago), Tries: tries}
	}
	for _, tt := range []struct {
		name   string
		found  *Duplicate
		stops  DuplicateStops
		change func(*Facts)
		want   Step
		again  time.Duration
	}{
		{name: "none", want: Rest},
		{name: "in one list", found: seen(4*time.Second, 4*time.Second), want: Rest, again: 6 * time.Second},
		{name: "in one list for long", found: seen(11*time.Second, 11*time.Second), want: Relist},
		{name: "in two lists", found: seen(15*time.Second, 0), want: DeleteDuplicate},
		{name: "in two lists, the newest of long ago", found: seen(time.Hour, 10*time.Second), want: Relist},
		{name: "in two lists, and nobody read", found: seen(15*time.Second, 0), change: func(f *Facts) { f.ReadLive = false }, want: ReadLive},
		{name: "in two lists, and the wanted one is gone", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = nil }, want: Rest},
		{name: "in two lists, and the wanted one is another", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = pod("c") }, want: Rest},
		{name: "asked to stop", found: seen(time.Hour, 0), stops: asked(15*time.Second, 1), want: Rest, again: 25 * time.Second},
		{name: "asked to stop long ago", found: seen(time.Hour, 0), stops: asked(41*time.Second, 1), want: DeleteDuplicate},
		{name: "asked to stop twice", found: seen(time.Hour, 0), stops: asked(41*time.Second, 2), want: Rest, again: 9 * time.Second},
		{name: "asked to stop many times", found: seen(time.Hour, 0), stops: asked(0, 90), want: Rest, again: 10*time.Minute + 30*time.Second},
		{name: "another was asked to stop", found: seen(15*time.Second, 0), stops: DuplicateStops{Pod: pod("c"), At: now, Tries: 1}, want: DeleteDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: running, Sent: accepted(running)}.facts()
			f.Duplicate, f.Stops, f.ByName = tt.found, tt.stops, false
			if tt.change != nil {
				tt.change(&f)
			}
			if d := Next(&f); d.Step != tt.want || d.Again != tt.again {
				t.Errorf("got step %d again %v, want %d again %v", d.Step, d.Again, tt.want, tt.again)
			}
		})
	}
	first := (*Duplicate)(nil).At(second, now)
	if later := first.At(second, now.Add(time.Minute)); !later.Since.Equal(now) || !later.Seen.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v for the second list", later)
	}
	if other := first.At(pod("c"), now.Add(time.Minute)); !other.Since.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v for another duplicate", other)
	}
	if gone := first.At(nil, now); gone != nil {
		t.Errorf("got %+v for a list without it", gone)
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
		want   string // ""; no failure is passed on
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
		})
	}
}
