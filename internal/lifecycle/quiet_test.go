// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestQuietMeansRest holds that a decision without asking the backend is the same as after asking it, if the backend has the pod.
func TestQuietMeansRest(t *testing.T) {
	for _, api := range []*corev1.Pod{nil, pod("a"), pod("a", inPhase(corev1.PodRunning)), pod("a", deleting(1)), pod("a", inPhase(corev1.PodFailed)), pod("a", withImage("j")), pod("b")} {
		for _, sent := range []Sent{{}, accepted(pod("a")), {UID: "a", Attempted: true}} {
			for _, failure := range []*PodFailure{nil, {}} {
				f := given{API: api, Sent: sent, Backend: pod("a"), Failure: failure}.facts()
				if !f.quiet() {
					continue
				}
				if d := nextWanted(&f, f.Own); d.Step != Rest || d.Again != 0 {
					t.Errorf("quiet, but Next says %+v for %+v, %+v", d, api, sent)
				}
			}
		}
	}
	if f := (given{API: pod("a"), Sent: accepted(pod("a"))}).facts(); !f.quiet() {
		t.Error("an accepted pod is not quiet")
	}
}

// TestStopsUnseenMeansStop holds the same for the first stop, for every state of the backend.
func TestStopsUnseenMeansStop(t *testing.T) {
	shown := accepted(pod("a"))
	shown.Shown = true
	stopped, missing, asked := shown, shown, shown
	stopped.StopAcked, stopped.StopAskedAt, missing.MissingSince, asked.StopAskedAt = true, now, now, now
	unseen := 0
	for _, api := range []*corev1.Pod{nil, pod("a"), pod("a", deleting(1)), pod("a", deleting(1), inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed)), pod("b", deleting(1))} {
		for _, sent := range []Sent{{}, shown, {UID: "a", Attempted: true}, stopped, missing, asked} {
			for _, failure := range []*PodFailure{nil, {}} {
				f := given{API: api, Sent: sent, Failure: failure}.facts()
				f.Reported = ReportedAlive
				if !f.stopsUnseen() {
					continue
				}
				unseen++
				for _, backend := range []*corev1.Pod{nil, pod("a"), pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))} {
					if d := nextWanted(&f, backend); d.Step != Stop || d.Again != 0 {
						t.Errorf("to be stopped unseen, but Next says %+v for %+v, %+v with %+v", d, api, sent, backend)
					}
				}
			}
		}
	}
	if unseen != 6 {
		t.Errorf("%d of the cases are stopped unseen, want 6: one accepted pod, which has a failure or is deleted", unseen)
	}
}

func BenchmarkQuiet(b *testing.B) {
	p := pod("a", withLabel("k", "v"), inPhase(corev1.PodRunning))
	f := given{API: p, Sent: accepted(p), Told: Told{Labels: p.Labels}}.facts()
	f.untake(Look)
	b.ReportAllocs()
	for b.Loop() {
		if d := Next(&f); d.Step != Rest {
			b.Fatal("not quiet")
		}
	}
}
