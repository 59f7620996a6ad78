// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestEveryPassEnds: for all facts and answers, Next asks each question at most once, and then returns a step
// without a question.
func TestEveryPassEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		asked := map[Step]int{}
		for range 16 {
			d := Next(f)
			if !d.Step.Asks() {
				return
			}
			if asked[d.Step]++; asked[d.Step] > 1 {
				t.Fatalf("step %d is taken twice on %+v", d.Step, f)
			}
			answer(t, f, d)
		}
		t.Fatalf("no step follows that asks nothing: %v", asked)
	})
}

// answer completes the facts as the sync lane does after a step that asks.
func answer(t *rapid.T, f *Facts, d Decision) {
	f.Taken.Add(d.Step)
	switch d.Step {
	case Look:
		f.Silent = rapid.Bool().Draw(t, "silent")
		f.Suspect = f.Suspect && f.Silent
		for range rapid.IntRange(0, 2).Draw(t, "shown") {
			p := anyPod(t, "backend")
			switch {
			case p == nil || f.Silent:
			case f.API != nil && SamePod(f.API, p):
				f.Own = p
			default:
				f.Named, f.Others = p, ShowOther(f.Others, p, &f.Sent, f.Now)
			}
		}
		f.Doubtful = rapid.Bool().Draw(t, "doubtful")
		f.Held = time.Duration(rapid.IntRange(0, 1).Draw(t, "held"))
		f.OrphanHeld = time.Duration(rapid.IntRange(0, 1).Draw(t, "orphan held"))
	case ReadLive:
		f.Live = anyPod(t, "live")
	case Fail:
		f.Failure = Lose()
	case Recreate:
		f.Sent.Accepted, f.Sent.Recreate, f.Sent.MissingSince = false, true, time.Time{}
	default:
		t.Fatalf("step %d asks for nothing that is known here", d.Step)
	}
}

func anyFacts(t *rapid.T) *Facts {
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	at := func(name string) time.Time {
		ago := rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Minute, time.Hour}).Draw(t, name)
		if ago < 0 {
			return time.Time{}
		}
		return now.Add(-ago)
	}
	uid := func(name string) types.UID { return rapid.SampledFrom([]types.UID{"", "a", "b"}).Draw(t, name) }
	f := &Facts{
		Now:    now,
		Wanted: Wanted{API: anyPod(t, "api"), Outdated: yes("outdated")},
		Done: Done{Stopped: yes("stopped"), Over: yes("over"), Sent: Sent{
			UID: uid("sent"), Attempted: yes("attempted"), AttemptedAt: at("attempted at"), Accepted: yes("accepted"), AcceptedAt: at("accepted at"),
			Recreate: yes("recreate"), MissingSince: at("missing since"), Shown: yes("shown"), StopAskedAt: at("stop asked at"),
			StopAcked: yes("acked"), StopMissing: yes("stop missing"), GoneSince: at("gone since"),
		}},
		Answers: Answers{Reported: rapid.SampledFrom([]Reported{NotReported, ReportedAlive, ReportedEnded, ReportedAgain}).Draw(t, "reported"),
			Reports: yes("reports"), Retell: yes("retell")},
		Doubt: Doubt{Suspect: yes("suspect"), LackedAt: at("lacked at"), Listed: yes("listed"), Visible: 30 * time.Second, TakenOver: at("taken over")},
	}
	if f.API != nil { // as the sync lane does when it tracks the pod
		f.Sent.UID = f.API.UID
	}
	if yes("failed") {
		f.Failure = &PodFailure{}
	}
	for range rapid.IntRange(0, 2).Draw(t, "others") {
		o := Other{UID: uid("other"), Since: at("other since"), Asked: at("other asked"), Stale: yes("other stale"), Deleted: yes("other deleted")}
		if o.Pod = anyPod(t, "other pod"); o.Pod != nil {
			o.UID = o.Pod.UID
		}
		f.Others = append(f.Others, o)
	}
	return f
}

func anyPod(t *rapid.T, name string) *corev1.Pod {
	if !rapid.Bool().Draw(t, name) {
		return nil
	}
	uid := rapid.SampledFrom([]types.UID{"a", "b", "c"}).Draw(t, name+" uid")
	if name == "api" || name == "live" {
		uid = rapid.SampledFrom([]types.UID{"a", "b"}).Draw(t, name+" uid")
	}
	p := pod(uid, inPhase(rapid.SampledFrom([]corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodFailed}).Draw(t, name+" phase")))
	if rapid.Bool().Draw(t, name+" deleted") {
		deleting(1)(p)
	}
	if rapid.Bool().Draw(t, name+" never") {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	return p
}
