// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type podOpt func(*corev1.Pod)

func pod(uid types.UID, opts ...podOpt) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: uid, Generation: 1},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	for _, o := range opts {
		o(p)
	}
	return p
}

func inPhase(phase corev1.PodPhase) podOpt { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func deleting(grace int64) podOpt {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now}
		p.DeletionGracePeriodSeconds = &grace
	}
}

func withImage(image string) podOpt {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image; p.Generation++ }
}

func withLabel(k, v string) podOpt {
	return func(p *corev1.Pod) { p.Labels = map[string]string{k: v} }
}

// accepted returns the record of a pod that the backend accepted a minute ago.
func accepted(p *corev1.Pod) Sent {
	return Sent{UID: p.UID, SpecVersion: SpecVersion(p), Attempted: true, Accepted: true, AcceptedAt: now.Add(-time.Minute)}
}

func asked(s Sent, ago time.Duration, grace int64, acked bool) Sent {
	s.StopAskedAt, s.StopGrace, s.StopAcked = now.Add(-ago), grace, acked
	return s
}

func TestNext(t *testing.T) {
	running, changed := pod("a", inPhase(corev1.PodRunning)), pod("a", withImage("j"))
	doomed := pod("a", deleting(10))
	ended := pod("a", inPhase(corev1.PodSucceeded))
	missingFor := func(s Sent, ago time.Duration) Sent { s.MissingSince = now.Add(-ago); return s }
	givenFor := func(s Sent, ago time.Duration) Sent { s.AcceptedAt = now.Add(-ago); return s }
	missing := func(ago time.Duration) Sent { return missingFor(accepted(running), ago) }
	unknown := func(ago time.Duration) Sent { // DeletePod returned not-found
		s := asked(accepted(running), ago, 10, false)
		s.StopMissing = true
		return s
	}
	stopped := asked(accepted(running), time.Second, 10, true)
	goneFor := func(s Sent, ago time.Duration) Sent { s.GoneSince = now.Add(-ago); return s }
	givenToIt := func(s Sent, ago time.Duration) Sent { s.AttemptedAt = now.Add(-ago); return s }
	shownOnce := func(s Sent) Sent { s.Shown = true; return s }
	tooNew := givenToIt(stopped, 15*time.Second)
	neverGiven := func(ago time.Duration) Sent {
		return Sent{UID: "a", Attempted: true, StopAskedAt: now.Add(-ago), StopGrace: 10, StopMissing: true}
	}
	for _, tt := range []struct {
		name  string
		facts given
		want  Step
		again time.Duration
	}{
		{name: "nothing on either side", want: Forget},
		{name: "a new pod", facts: given{API: pod("a")}, want: Create},
		{name: "a create that failed", facts: given{API: pod("a"), Sent: Sent{UID: "a", Attempted: true}}, want: Create},
		{name: "all is as it should be", facts: given{API: running, Sent: accepted(running), Backend: running}, want: Rest},
		{name: "found at the backend after a restart", facts: given{API: running, Backend: running}, want: Adopt},
		{name: "found after a restart at a backend that keeps no specs", facts: given{API: running, Backend: running, Retell: true}, want: Update},
		{name: "all is as it should be at a backend that keeps no specs", facts: given{API: running, Sent: accepted(running), Backend: running, Retell: true}, want: Rest},
		{name: "found with less than we know", facts: given{API: pod("a", withLabel("k", "v")), Backend: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}, want: Adopt},
		{name: "changed while nobody watched", facts: given{API: changed, Backend: running}, want: Update},
		{name: "changed while nobody watched, in what the backend's copy lacks", facts: given{API: pod("a", func(p *corev1.Pod) { p.Generation, p.Status.ObservedGeneration = 3, 2 }), Backend: pod("a")}, want: Update},
		{name: "relabelled while nobody watched", facts: given{API: pod("a", withLabel("k", "v")), Backend: pod("a", withLabel("k", "w"))}, want: Update},
		{name: "changed", facts: given{API: changed, Sent: accepted(running), Backend: running}, want: Update},
		{name: "relabelled", facts: given{API: pod("a", withLabel("k", "v")), Sent: accepted(pod("a")), Backend: pod("a")}, want: Update},
		{name: "a lossy copy is no change", facts: given{API: running, Sent: accepted(running), Backend: pod("a", withImage("x"))}, want: Rest},

		{name: "only at the backend", facts: given{Backend: running}, want: Wait, again: 10 * time.Second},
		{name: "an older pod of the same name", facts: given{API: pod("b"), Backend: pod("a")}, want: Wait, again: 10 * time.Second},
		{name: "an older pod, while the new one is deleted", facts: given{API: pod("b", deleting(1)), Backend: pod("a")}, want: Stopped, again: 10 * time.Second},

		{name: "deleted before it was created", facts: given{API: doomed}, want: Stopped},
		{name: "deleted after an earlier process ran it", facts: given{API: pod("a", deleting(10), inPhase(corev1.PodRunning))}, want: Stop},
		{name: "deleted, and an earlier process may have created it", facts: given{API: doomed, Earlier: true}, want: Stop},
		{name: "deleted after an earlier process saw it end", facts: given{API: pod("a", deleting(10), inPhase(corev1.PodFailed))}, want: Stopped},
		{name: "deleted after a create with unknown outcome", facts: given{API: doomed, Sent: Sent{UID: "a", Attempted: true}}, want: Stop},
		{name: "deleted", facts: given{API: doomed, Sent: accepted(running), Backend: running}, want: Stop},
		{name: "deleted while nobody watched", facts: given{API: doomed, Backend: running}, want: Stop},
		{name: "the stop was refused", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, false), Backend: running}, want: Stop},
		{name: "the stop is under way", facts: given{API: doomed, Sent: asked(accepted(running), 4*time.Second, 10, true), Backend: running}, want: Rest, again: 2 * time.Second},
		{name: "the grace period is over, which confirms nothing", facts: given{API: doomed, Sent: asked(accepted(running), 30*time.Second, 10, true), Backend: running}, want: Rest, again: 10 * time.Second},
		{name: "the stop is overdue", facts: given{API: doomed, Sent: asked(accepted(running), 41*time.Second, 10, true), Backend: running}, want: Stop},
		{name: "the stop is not overdue yet", facts: given{API: doomed, Sent: asked(accepted(running), 40*time.Second, 10, true), Backend: running}, want: Rest, again: 10 * time.Second},
		{name: "deleted again with less grace", facts: given{API: pod("a", deleting(0)), Sent: asked(accepted(running), time.Second, 10, true), Backend: running}, want: Stop},
		{name: "stopped and gone", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, true)}, want: Stopped},
		{name: "stopped and kept by the backend", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, true), Backend: ended}, want: Stopped},
		{name: "stopped, as reported", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, true), Backend: running, Finished: true}, want: Stopped},

		{name: "stopped and gone, and its report may come", facts: given{API: doomed, Sent: stopped, Reports: true}, want: Gone, again: ReportedWithin},
		{name: "stopped and gone for a moment", facts: given{API: doomed, Sent: goneFor(stopped, 100*time.Millisecond), Reports: true}, want: Rest, again: 150 * time.Millisecond},
		{name: "stopped and gone for so long that no report comes", facts: given{API: doomed, Sent: goneFor(stopped, ReportedWithin), Reports: true}, want: Stopped},
		{name: "stopped and gone, as reported", facts: given{API: doomed, Sent: stopped, Reports: true, Finished: true}, want: Stopped},
		{name: "stopped and gone for a moment, as reported", facts: given{API: doomed, Sent: goneFor(stopped, 0), Reports: true, Finished: true}, want: Stopped},
		{name: "gone before the stop, and its report may come", facts: given{API: doomed, Sent: unknown(time.Hour), Reports: true}, want: Gone, again: ReportedWithin},
		{name: "gone before the stop for a moment", facts: given{API: doomed, Sent: goneFor(unknown(time.Hour), 100*time.Millisecond), Reports: true}, want: Rest, again: 150 * time.Millisecond},
		{name: "the stop was refused, and it is gone", facts: given{API: doomed, Sent: goneFor(asked(accepted(running), time.Second, 10, false), 0), Reports: true}, want: Stop},
		{name: "the stop was refused, and it is not there", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, false), Reports: true}, want: Stop},
		{name: "deleted, and its end will be reported", facts: given{API: doomed, Sent: accepted(running), Backend: running, Reports: true}, want: Stop},
		{name: "stopped, gone and shown again", facts: given{API: doomed, Sent: goneFor(stopped, 0), Backend: ended, Reports: true}, want: Stopped},
		{name: "stopped, and too new to be shown", facts: given{API: doomed, Sent: tooNew, Reports: true}, want: Rest, again: 500 * time.Millisecond},
		{name: "stopped, and soon shown if it runs", facts: given{API: doomed, Sent: givenToIt(stopped, 29900*time.Millisecond)}, want: Rest, again: 100 * time.Millisecond},
		{name: "stopped a moment ago, and too new to be shown", facts: given{API: doomed, Sent: givenToIt(asked(accepted(running), 100*time.Millisecond, 10, true), time.Second)}, want: Rest, again: ReportedWithin},
		{name: "stopped, and too new to be shown, but it was", facts: given{API: doomed, Sent: shownOnce(tooNew)}, want: Stopped},
		{name: "stopped, and too new to be shown, but it is reported as ended", facts: given{API: doomed, Sent: tooNew, Finished: true}, want: Stopped},
		{name: "stopped, and given to a former process perhaps", facts: given{API: doomed, Sent: asked(Sent{UID: "a", Attempted: true}, time.Second, 10, true), Earlier: true, Began: now}, want: Stopped},
		{name: "deleted, and too new to be shown", facts: given{API: doomed, Sent: givenToIt(accepted(running), time.Second)}, want: Stop},
		{name: "stopped, and nobody answers", facts: given{API: doomed, Sent: stopped, Reports: true, Doubtful: true}, want: Rest, again: missingAfter},
		{name: "stopped, and nobody answers for a while", facts: given{API: doomed, Sent: asked(accepted(running), 19*time.Second, 10, true), Doubtful: true}, want: Rest, again: missingAfter},
		{name: "stopped, and nobody answers for longer than it may take", facts: given{API: doomed, Sent: asked(accepted(running), 20*time.Second, 10, true), Doubtful: true}, want: Stopped},
		{name: "stopped, and nobody answers, but it is reported as ended", facts: given{API: doomed, Sent: stopped, Doubtful: true, Finished: true}, want: Stopped},
		{name: "stopped, and a list lacks what has its name", facts: given{API: doomed, Sent: asked(accepted(running), 69*time.Second, 10, true), Backend: pod("b", inPhase(corev1.PodFailed)), Doubtful: true}, want: Rest, again: missingAfter},
		{name: "stopped, and a list lacks what has its name for long", facts: given{API: doomed, Sent: asked(accepted(running), 70*time.Second, 10, true), Backend: pod("b", inPhase(corev1.PodFailed)), Doubtful: true}, want: Stopped},
		{name: "not there when it was to stop, and nobody answers", facts: given{API: doomed, Sent: unknown(10 * time.Second), Doubtful: true}, want: Stopped},

		{name: "not there when it was to stop", facts: given{API: doomed, Sent: unknown(4 * time.Second)}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, for long enough", facts: given{API: doomed, Sent: unknown(10 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, and never given to this process", facts: given{API: doomed, Sent: neverGiven(4 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, and given to a former one perhaps", facts: given{API: doomed, Sent: neverGiven(4 * time.Second), Earlier: true, Began: now.Add(-time.Minute)}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, and given to a former one a moment ago perhaps", facts: given{API: doomed, Sent: neverGiven(12 * time.Second), Earlier: true, Began: now.Add(-14 * time.Second)}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, and given to a former one, as the backend would know by now", facts: given{API: doomed, Sent: neverGiven(time.Second), Earlier: true, Complete: true, Began: now.Add(-2 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, and given to a former one whose call may be on its way", facts: given{API: doomed, Sent: neverGiven(time.Second), Earlier: true, Complete: true, Began: now.Add(-1500 * time.Millisecond)}, want: Rest, again: 500 * time.Millisecond},
		{name: "not there when it was to stop, and never given to this process, which is young", facts: given{API: doomed, Sent: neverGiven(4 * time.Second), Began: now}, want: Stopped},
		{name: "not there when it was to stop, and given to a slow backend since the restart", facts: given{API: doomed, Sent: givenToIt(neverGiven(40*time.Second), 15*time.Second), Earlier: true, Began: now}, want: Rest, again: 15 * time.Second},
		{name: "not there when it was to stop, and run by a former process", facts: given{API: pod("a", deleting(10), inPhase(corev1.PodRunning)), Sent: neverGiven(4 * time.Second), Earlier: true, Began: now}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, and run before", facts: given{API: pod("a", deleting(10), inPhase(corev1.PodRunning)), Sent: neverGiven(4 * time.Second)}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, and given to a former one, by a backend that shows at once", facts: given{API: doomed, Sent: neverGiven(time.Second), Earlier: true, Complete: true, Visible: time.Second, Began: now.Add(-time.Second)}, want: Stopped},
		{name: "not there when it was to stop, and missing for long", facts: given{API: doomed, Sent: missingFor(unknown(4*time.Second), 10*time.Second)}, want: Stopped},
		{name: "not there when it was to stop for long, and missing since", facts: given{API: doomed, Sent: missingFor(unknown(10*time.Second), time.Second)}, want: Stopped},
		{name: "not there when it was to stop, with many", facts: given{API: doomed, Sent: unknown(10 * time.Second), Held: 4 * time.Second}, want: Rest, again: 4 * time.Second},
		{name: "not there when it was to stop, with many, for long", facts: given{API: doomed, Sent: unknown(10 * time.Second), Held: time.Hour}, want: Rest, again: missingAfter},
		{name: "not there when it was to stop, and now it is", facts: given{API: doomed, Sent: unknown(4 * time.Second), Backend: running}, want: Rest, again: 6 * time.Second},
		{name: "not there when it was to stop, and now it is with less grace", facts: given{API: pod("a", deleting(5)), Sent: unknown(4 * time.Second), Backend: running}, want: Stop},
		{name: "not there when it was to stop, and for long it is", facts: given{API: doomed, Sent: unknown(10 * time.Second), Backend: running}, want: Stop},
		{name: "not there when it was to stop, by a list of then", facts: given{API: doomed, Sent: unknown(10 * time.Second), LackedAt: now.Add(-10 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, by a list of before, and never given", facts: given{API: doomed, Sent: neverGiven(10 * time.Second), LackedAt: now.Add(-11 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, by a list of before, and reported as ended", facts: given{API: doomed, Sent: unknown(10 * time.Second), Finished: true, LackedAt: now.Add(-11 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, by a list of before, and ended", facts: given{API: pod("a", deleting(10), inPhase(corev1.PodFailed)), Sent: unknown(10 * time.Second), LackedAt: now.Add(-11 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, by a list of before, of a backend that knows of all that it has", facts: given{API: doomed, Sent: unknown(10 * time.Second), Complete: true, LackedAt: now.Add(-11 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, by a list of before", facts: given{API: doomed, Sent: unknown(10 * time.Second), LackedAt: now.Add(-11 * time.Second)}, want: Relist, again: 5 * time.Second},
		{name: "not there when it was to stop, by a list of before, of a backend that lists none", facts: given{API: doomed, Sent: unknown(10 * time.Second), Unlisted: true, LackedAt: now.Add(-11 * time.Second)}, want: Stopped},
		{name: "not there when it was to stop, with many, and never given", facts: given{API: doomed, Sent: neverGiven(10 * time.Second), Held: 4 * time.Second}, want: Stopped},
		{name: "not there, but listed", facts: given{API: doomed, Sent: unknown(10 * time.Second), Listed: true}, want: Stop},
		{name: "not there, but in each list since", facts: given{API: doomed, Sent: unknown(10 * time.Second), Listed: true, LackedAt: now.Add(-time.Hour)}, want: Stop},
		{name: "not there, but listed, and asked for a moment ago", facts: given{API: doomed, Sent: missingFor(unknown(4*time.Second), time.Hour), Listed: true}, want: Rest, again: 6 * time.Second},
		{name: "not there, and reported as finished", facts: given{API: doomed, Sent: unknown(0), Finished: true, Listed: true}, want: Stopped},
		{name: "not there, and reported as running again", facts: given{API: doomed, Sent: unknown(10 * time.Second), Finished: true, Relapsed: true, Listed: true}, want: Stop},

		{name: "ended", facts: given{API: ended, Sent: accepted(running), Backend: ended}, want: Rest},
		{name: "ended and forgotten by the backend", facts: given{API: ended}, want: Rest},
		{name: "ended, and the backend's copy is old", facts: given{API: ended, Sent: accepted(running), Backend: running, Finished: true}, want: Rest},
		{name: "declared as failed by somebody else", facts: given{API: pod("a", inPhase(corev1.PodFailed)), Sent: accepted(running), Backend: running}, want: Stop},
		{name: "failed by our failure", facts: given{API: running, Sent: accepted(running), Backend: running, Failure: &PodFailure{}}, want: Stop},
		{name: "shut down, with less time than its own", facts: given{API: running, Sent: asked(accepted(running), 41*time.Second, 10, true), Backend: running, Failure: ShutDown(nil, 10*time.Second)}, want: Stop},
		{name: "shut down, as asked", facts: given{API: running, Sent: asked(accepted(running), 4*time.Second, 10, true), Backend: running, Failure: ShutDown(nil, 10*time.Second)}, want: Rest, again: 2 * time.Second},
		{name: "shut down while it is deleted", facts: given{API: pod("a", deleting(600)), Sent: asked(accepted(running), 4*time.Second, 600, true), Backend: running, Failure: ShutDown(nil, 10*time.Second)}, want: Stop},
		{name: "refused", facts: given{API: pod("a"), Failure: Refuse()}, want: Stopped},
		{name: "failed by our failure, gone", facts: given{API: running, Sent: asked(accepted(running), 0, 30, true), Failure: &PodFailure{}}, want: Stopped},

		{name: "missing for the first time", facts: given{API: running, Sent: accepted(running)}, want: Missing, again: missingAfter},
		{name: "missing after a restart", facts: given{API: running}, want: Missing, again: missingAfter},
		{name: "missing for a while", facts: given{API: running, Sent: missing(4 * time.Second)}, want: Rest, again: 6 * time.Second},
		{name: "lost", facts: given{API: running, Sent: missing(10 * time.Second)}, want: Recreate},
		{name: "lost, and to be created again", facts: given{API: running, Sent: Sent{UID: "a", Attempted: true, Recreate: true}}, want: Create},
		{name: "lost after a restart", facts: given{API: running, Sent: missingFor(Sent{UID: "a"}, 10*time.Second), Earlier: true, Began: now.Add(-30 * time.Second)}, want: Recreate},
		{name: "lost after a restart, or created anew before it", facts: given{API: running, Sent: missingFor(Sent{UID: "a"}, 10*time.Second), Earlier: true, Began: now.Add(-29 * time.Second)}, want: Rest, again: time.Second},
		{name: "lost after a restart, as the backend would know by now", facts: given{API: running, Sent: missingFor(Sent{UID: "a"}, 10*time.Second), Earlier: true, Complete: true, Began: now.Add(-11 * time.Second)}, want: Recreate},
		{name: "lost with many", facts: given{API: running, Sent: missing(10 * time.Second), Held: 4 * time.Second}, want: Rest, again: 4 * time.Second},
		{name: "lost with many, for long", facts: given{API: running, Sent: missing(10 * time.Second), Held: time.Hour}, want: Rest, again: missingAfter},
		{name: "lost, but listed", facts: given{API: running, Sent: missing(10 * time.Second), Listed: true}, want: Rest, again: missingAfter},
		{name: "lost, as the backend knows of all that it has", facts: given{API: running, Sent: missing(12 * time.Second), Complete: true, LackedAt: now.Add(-time.Hour), Unread: true}, want: ReadLive},
		{name: "lost, by a list of before that could be said", facts: given{API: running, Sent: missing(12 * time.Second), LackedAt: now.Add(-3 * time.Second), Unread: true}, want: Relist, again: 5 * time.Second},
		{name: "lost, by a list of then", facts: given{API: running, Sent: missing(12 * time.Second), LackedAt: now.Add(-2 * time.Second), Unread: true}, want: ReadLive},
		{name: "lost, by a list of less long ago", facts: given{API: running, Sent: givenFor(missing(time.Hour), 2*time.Hour), LackedAt: now.Add(-60 * time.Second), Unread: true}, want: ReadLive},
		{name: "lost, by a list of then, and the API server took long to say so", facts: given{API: running, Sent: givenFor(missing(time.Hour), 2*time.Hour), LackedAt: now.Add(-90 * time.Second)}, want: Recreate},
		{name: "lost, by a list of long ago", facts: given{API: running, Sent: givenFor(missing(time.Hour), 2*time.Hour), LackedAt: now.Add(-61 * time.Second), Unread: true}, want: Relist, again: 5 * time.Second},
		{name: "seen again", facts: given{API: running, Sent: missing(4 * time.Second), Backend: running}, want: Adopt},
		{name: "seen again, and changed meanwhile", facts: given{API: pod("a", inPhase(corev1.PodRunning), withImage("j")), Sent: missing(4 * time.Second), Backend: running}, want: Update},
		{name: "ended, and runs again", facts: given{API: ended, Sent: accepted(running), Backend: running, Finished: true, Relapsed: true}, want: Stop},
		{name: "ended, runs again, and must stop", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, true), Backend: running, Finished: true, Relapsed: true}, again: 500 * time.Millisecond},
		{name: "ended, and must stop", facts: given{API: doomed, Sent: asked(accepted(running), time.Second, 10, true), Backend: running, Finished: true}, want: Stopped},
		{name: "missing because it has finished, whatever was said since", facts: given{API: running, Sent: accepted(running), Finished: true, Relapsed: true}, want: Rest},
		{name: "missing because it has finished", facts: given{API: running, Sent: accepted(running), Finished: true}, want: Rest},
		{name: "accepted a moment ago by a slow backend", facts: given{API: pod("a"), Sent: func() Sent {
			s := missing(10 * time.Second)
			s.AcceptedAt = now.Add(-12 * time.Second)
			return s
		}()}, want: Rest, again: 18 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.facts.facts()
			if got := Next(&f); got.Step != tt.want || got.Again != tt.again {
				t.Errorf("got step %d again %v, want step %d again %v", got.Step, got.Again, tt.want, tt.again)
			}
		})
	}
}

// untake removes a step from the taken steps.
func (f *Facts) untake(step Step) { f.Taken &^= 1 << step }

// given has the inputs of a case. All questions count as asked.
type given struct {
	API, Backend               *corev1.Pod
	Sent                       Sent
	Told                       Told
	Failure                    *PodFailure
	Finished, Relapsed         bool
	Reports, Retell            bool
	Doubtful, Complete, Listed bool
	Unlisted                   bool
	Held                       time.Duration
	LackedAt                   time.Time // zero: now
	Earlier                    bool
	Began                      time.Time
	Visible                    time.Duration // zero: 30 s
	Unread                     bool          // no live read was made
}

func (k given) facts() Facts {
	f := Facts{
		Now:     now,
		Wanted:  Wanted{API: k.API, Failure: k.Failure, Live: k.API},
		Done:    Done{Sent: k.Sent},
		Answers: Answers{Reports: k.Reports, Retell: k.Retell},
		Doubt: Doubt{Doubtful: k.Doubtful, Complete: k.Complete, Held: k.Held, OrphanHeld: k.Held,
			LackedAt: k.LackedAt, Listed: k.Listed, Unlisted: k.Unlisted, Visible: 30 * time.Second},
	}
	f.Outdated = k.API != nil && k.Sent.Accepted && IsOutdated(k.API, &k.Sent, &k.Told)
	switch {
	case k.Finished && k.Relapsed:
		f.Reported = ReportedAgain
	case k.Finished:
		f.Reported = ReportedEnded
	}
	if k.Earlier {
		f.TakenOver = now.Add(-time.Hour)
		if !k.Began.IsZero() {
			f.TakenOver = k.Began
		}
	}
	switch {
	case k.Backend == nil:
	case k.API != nil && SamePod(k.API, k.Backend):
		f.Own = k.Backend
	default:
		f.Named = k.Backend
		f.Others = ShowOther(nil, k.Backend, &k.Sent, now)
	}
	f.Taken.Add(Look)
	if !k.Unread {
		f.Taken.Add(ReadLive)
	}
	if f.LackedAt.IsZero() {
		f.LackedAt = now
	}
	if k.Visible > 0 {
		f.Visible = k.Visible
	}
	return f
}

func TestDeadline(t *testing.T) {
	seconds := int64(60)
	p := pod("a", started)
	if _, has := Deadline(p); has {
		t.Error("a pod without an active time has a deadline")
	}
	p.Spec.ActiveDeadlineSeconds, p.Status.StartTime = &seconds, nil
	if _, has := Deadline(p); has {
		t.Error("a pod that has not started has a deadline")
	}
	p.Status.StartTime = &metav1.Time{Time: now}
	if d, has := Deadline(p); !has || !d.Equal(now.Add(time.Minute)) {
		t.Errorf("got %v %v, want a minute after the start", d, has)
	}
}
