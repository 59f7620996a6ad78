// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestWhatIsAskedFirst holds that each question is a separate step, and is asked only if the answer matters.
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
		{"the backend, of a new pod", given{API: pod("a")}, func(f *Facts) { f.untake(Look) }, Look},
		{"the backend, of a pod that only it may have", given{}, func(f *Facts) { f.untake(Look) }, Look},
		{"nobody, of a pod that is gone on both sides", given{}, func(f *Facts) { f.untake(Look); f.Stopped = true }, Forget},
		{"the backend, of what it kept of one that is gone", given{}, func(f *Facts) {
			f.untake(Look)
			f.Stopped, f.Others = true, []Other{{UID: "a", Pod: failed, Asked: now}}
		}, Look},
		{"the backend, of an orphan that it has shown", given{}, func(f *Facts) { f.untake(Look); f.Stopped, f.Others = true, []Other{{UID: "a", Pod: running}} }, Look},
		{"the backend, of an orphan that was told to stop", given{}, func(f *Facts) { f.untake(Look); f.Stopped, f.Others = true, []Other{{UID: "a", Asked: now}} }, Look},
		{"nobody, of an orphan that the backend has not shown", given{}, func(f *Facts) { f.untake(Look); f.Stopped, f.Others = true, []Other{{UID: "a", Deleted: true}} }, Forget},
		{"nobody, of a pod that is at rest", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.untake(Look) }, Rest},
		{"the backend, of a pod that is at rest and not in its list", given{API: running, Sent: accepted(running)}, func(f *Facts) { f.untake(Look); f.Suspect = true }, Look},
		{"no more, as the backend turned out to lack a pod that was at rest", given{API: running, Sent: accepted(running)}, nil, Missing},
		{"no more, as the backend turned out to run a pod that had ended", given{API: failed, Sent: Sent{UID: "a"}, Backend: running}, func(f *Facts) { f.Over = true }, Stop},
		{"again, as it did not answer", given{API: pod("a")}, func(f *Facts) { f.Silent = true }, Retry},
		{"again, of an orphan", given{}, func(f *Facts) { f.Silent = true }, Retry},
		{"nobody, as a pod is to stop all the same", given{API: pod("a", deleting(1)), Sent: accepted(running)}, func(f *Facts) { f.Silent = true }, Stop},

		{"the API server, of a lost pod", given{API: running, Sent: lost}, func(f *Facts) { f.untake(ReadLive) }, ReadLive},
		{"the API server, of a lost pod whose name another one has", given{API: running, Sent: lost}, func(f *Facts) { f.untake(ReadLive); f.Others = []Other{{UID: "b", Pod: pod("b"), Since: now}} }, ReadLive},
		{"nobody, as the lost pod is gone from the API server", given{API: running, Sent: lost}, func(f *Facts) { f.Live = nil }, Wait},
		{"nobody, as the lost pod has another UID there", given{API: running, Sent: lost}, func(f *Facts) { f.Live = pod("b") }, Wait},
		{"nobody, as the lost pod has failed", given{API: never, Sent: lost}, nil, Fail},
		{"nobody, as the lost pod was given up for another one", given{API: never, Sent: Sent{UID: "a", MissingSince: lost.MissingSince}}, func(f *Facts) { f.API.Status.Phase = corev1.PodRunning }, Fail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if tt.change != nil {
				tt.change(&f)
			}
			got := Next(&f)
			if got.Step != tt.want {
				t.Errorf("got step %d, want %d", got.Step, tt.want)
			}
			if got.Step.Asks() && got.Again != 0 {
				t.Errorf("got another look after %v, though the answer comes first", got.Again)
			}
			if got.Step == Wait && got.Again != 10*time.Second {
				t.Errorf("got another look after %v", got.Again)
			}
		})
	}
}

// TestALookPrecedesTheStopOfAPodThatMayNotRun holds that only a pod that a list contained and that is reported as running is stopped
// without a lookup. The stop acts on the UID, so other pods of the name need no lookup.
func TestALookPrecedesTheStopOfAPodThatMayNotRun(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", deleting(1)), Sent: accepted(pod("a"))}.facts()
		f.untake(Look)
		f.Sent.Shown, f.Reported = true, ReportedAlive
		return &f
	}
	if d := Next(known()); d.Step != Stop {
		t.Error("a pod that is reported as running is looked for before its stop")
	}
	for name, change := range map[string]func(*Facts){
		"no report that it runs":          func(f *Facts) { f.Reported = NotReported },
		"a pod that is not accepted":      func(f *Facts) { f.Sent.Accepted = false },
		"a pod that no list had":          func(f *Facts) { f.Sent.Shown = false },
		"a pod that is missing":           func(f *Facts) { f.Sent.MissingSince = now },
		"a pod that was asked for a stop": func(f *Facts) { f.Sent.StopAskedAt = now },
		"another pod":                     func(f *Facts) { f.Sent.UID = "b" },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != Look {
			t.Errorf("%s: the pod is stopped without a look", name)
		}
	}
}

// TestWhatIsAcceptedIsAtRest holds that an accepted pod needs no step: if the backend loses the pod, the relist detects it.
func TestWhatIsAcceptedIsAtRest(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a"), Sent: accepted(pod("a"))}.facts()
		f.untake(Look)
		return &f
	}
	if d := Next(known()); d.Step != Rest {
		t.Errorf("an accepted pod: got step %d, want Rest", d.Step)
	}
	for name, change := range map[string]func(*Facts){
		"it has ended":       func(f *Facts) { f.API = pod("a", inPhase(corev1.PodFailed)) },
		"it is deleted":      func(f *Facts) { f.API = pod("a", deleting(1)) },
		"it has failed":      func(f *Facts) { f.Failure = &PodFailure{} },
		"it is another pod":  func(f *Facts) { f.API = pod("b") },
		"it is gone":         func(f *Facts) { f.API = nil },
		"it is not accepted": func(f *Facts) { f.Sent.Accepted = false },
		"it is missing":      func(f *Facts) { f.Sent.MissingSince = now },
		"it was changed":     func(f *Facts) { f.Outdated = true },
		"a list lacks it":    func(f *Facts) { f.Suspect = true },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != Look {
			t.Errorf("%s: the backend is not asked", name)
		}
	}
}

// TestStopWithoutAnAnswer holds that a deleted pod is stopped even if the backend does not answer what it has.
func TestStopWithoutAnAnswer(t *testing.T) {
	api := pod("a", deleting(10), inPhase(corev1.PodFailed))
	f := given{API: api, Sent: asked(accepted(pod("a")), 41*time.Second, 10, true)}.facts()
	f.Silent = true
	if d := Next(&f); d.Step != Stop || d.Backend == nil || d.Backend.UID != "a" || d.Backend.Status.Phase != "" {
		t.Errorf("got step %d of %+v, want the stop of a pod that may run", d.Step, d.Backend)
	}
	if api.Status.Phase != corev1.PodFailed {
		t.Error("the pod in the API server has changed")
	}
}

// TestStopBehindAnother holds that another pod of the name does not delay the checks of a stop.
func TestStopBehindAnother(t *testing.T) {
	running, own := pod("a", inPhase(corev1.PodRunning)), pod("b", inPhase(corev1.PodRunning))
	f := given{API: pod("b", deleting(10)), Sent: asked(accepted(own), time.Second, 10, true), Backend: running}.facts()
	f.Own = own
	if d := Next(&f); d.Step != Rest || d.Again != time.Second/2 {
		t.Errorf("got step %d again %v, want Rest again after half a second", d.Step, d.Again)
	}
}

// TestNothingIsLeftButTheObject holds that a stopped pod is no longer looked up only if no other pod can have the name.
func TestNothingIsLeftButTheObject(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", deleting(1)), Sent: Sent{UID: "a"}, Finished: true}.facts()
		f.untake(Look)
		f.Stopped = true
		return &f
	}
	kept := known()
	kept.Others = []Other{{UID: "a", Pod: pod("a", inPhase(corev1.PodFailed)), Asked: now}} // the backend keeps it after its end
	for _, f := range []*Facts{known(), kept} {
		if d := Next(f); d.Step != Rest {
			t.Errorf("a deleted pod that has stopped: got step %d, want Rest", d.Step)
		}
	}
	for name, change := range map[string]func(*Facts){
		"it is not deleted":          func(f *Facts) { f.API = pod("a") },
		"it is another pod":          func(f *Facts) { f.API = pod("b", deleting(1)) },
		"its stop is not confirmed":  func(f *Facts) { f.Stopped = false },
		"its end is not reported":    func(f *Facts) { f.Reported = NotReported },
		"it was reported as running": func(f *Facts) { f.Reported = ReportedAgain },
		"a list lacks it":            func(f *Facts) { f.Suspect = true },
	} {
		f := known()
		change(f)
		if d := Next(f); d.Step != Look {
			t.Errorf("%s: the pod is not looked for", name)
		}
	}
}

// TestWhatHasEndedIsAtRest holds that an ended pod needs no step until it is deleted or suspect.
func TestWhatHasEndedIsAtRest(t *testing.T) {
	known := func() *Facts {
		f := given{API: pod("a", inPhase(corev1.PodFailed)), Sent: Sent{UID: "a"}}.facts()
		f.untake(Look)
		f.Over = true
		return &f
	}
	if d := Next(known()); d.Step != Rest {
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
		if d := Next(f); d.Step != Look {
			t.Errorf("%s: the pod is not looked for", name)
		}
	}
}
