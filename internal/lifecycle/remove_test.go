// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestRemoveOnlyAfterConfirmation(t *testing.T) {
	doomed := pod("a", deleting(0))
	ended := pod("a", deleting(0))
	ended.Status = *endedStatus(0)
	held := pod("a", deleting(0))
	held.Finalizers = []string{"somebody/else"}
	held.Status = *endedStatus(0)
	for _, tt := range []struct {
		name string
		view View
		want Write
	}{
		{"nothing confirmed, although the grace period is over", View{API: doomed, Attempted: true}, Keep},
		{"asked", View{API: doomed, StopAsked: true, Attempted: true}, Keep},
		{"never started", View{API: doomed, Stopped: true}, Remove},
		{"reported and asked", View{API: ended, Report: &ended.Status, StopAsked: true, FinalStatus: true}, Remove},
		{"reported and asked, and then reported as running", View{API: ended, Report: &ended.Status, Relapsed: true, StopAsked: true, FinalStatus: true}, Keep},
		{"reported and asked, then reported as running, and stopped", View{API: ended, Report: &ended.Status, Relapsed: true, StopAsked: true, Stopped: true, FinalStatus: true}, Remove},
		{"reported but not asked: the backend may have to clean up", View{API: ended, Report: &ended.Status, FinalStatus: true}, Keep},
		{"held by a finalizer: asked for once", View{API: held, Stopped: true, FinalStatus: true}, Keep},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.view.Now = now
			if tt.view.Report != nil {
				tt.view.Report = nil
				_, tt.view.API = publish(t, View{API: tt.view.API, Report: endedStatus(0)})
				tt.view.Report = endedStatus(0)
			}
			if got, status := Publish(tt.view); got != tt.want {
				t.Errorf("got %d, want %d\n%s", got, tt.want, cmp.Diff(tt.view.API.Status, status))
			}
		})
	}
}

// TestNothingIsWrittenToAPodThatLeaves: after a deletion without grace, a write makes the API server remove the object of that name, which
// may be the next pod.
func TestNothingIsWrittenToAPodThatLeaves(t *testing.T) {
	forced := pod("a", deleting(0))
	forced.Status = *runningStatus()
	held := pod("a", deleting(0))
	held.Finalizers, held.Status = []string{"somebody/else"}, *runningStatus()
	ended := View{Report: endedStatus(1), StopAsked: true, Attempted: true, Now: now}
	for _, tt := range []struct {
		name    string
		api     *corev1.Pod
		stopped bool
		want    Write
	}{
		{"it runs", forced, false, Keep},
		{"it has stopped", forced, true, Remove},
		{"a finalizer holds it", held, true, Patch},
		{"it has grace", pod("a", deleting(1)), true, Patch},
	} {
		view := ended
		view.API, view.Stopped = tt.api, tt.stopped
		if !tt.stopped {
			view.StopAsked, view.Report = false, endedStatus(0)
		}
		if got, _ := Publish(view); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestFinalStatusComesBeforeTheRemoval holds that the final status is written once before the removal, if it is needed.
func TestFinalStatusComesBeforeTheRemoval(t *testing.T) {
	held := func(grace int64) *corev1.Pod {
		return pod("a", deleting(grace), func(p *corev1.Pod) { p.Finalizers = []string{"somebody/else"} })
	}
	report, forced := endedStatus(0), pod("a", deleting(0), inPhase(corev1.PodRunning))
	_, published := publish(t, View{API: pod("a", deleting(1)), Report: runningStatus()})
	for _, tt := range []struct {
		name string
		view View
		want Write
	}{
		{"it runs, as published", View{API: published, Report: runningStatus()}, Keep},
		{"it runs, and that is news", View{API: pod("a", deleting(1)), Report: runningStatus(), FinalStatus: true}, Patch},
		{"never given to the backend", View{API: pod("a", deleting(1)), Stopped: true}, Remove},
		{"given to the backend", View{API: pod("a", deleting(1)), Stopped: true, Attempted: true}, Patch},
		{"given to the backend, and written", View{API: pod("a", deleting(1)), Stopped: true, Attempted: true, FinalStatus: true}, Remove},
		{"reported", View{API: pod("a", deleting(1)), Stopped: true, Report: report}, Patch},
		{"waited for by a finalizer", View{API: held(1), Stopped: true}, Patch},
		{"waited for by a finalizer, and written", View{API: held(1), Stopped: true, FinalStatus: true}, Remove},
		{"removal asked for, and waited for by a finalizer", View{API: held(0), Stopped: true, FinalStatus: true}, Keep},
		{"asked to stop without grace, and runs", View{API: forced, StopAsked: true, Report: runningStatus()}, Keep},
		{"asked to stop without grace, and reported", View{API: forced, StopAsked: true, Report: report}, Remove},
		{"deleted by an API server that names no grace", View{API: pod("a", deleting(1), func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = nil }), Stopped: true, Attempted: true}, Patch},
		{"gone", View{Stopped: true}, Keep},
	} {
		tt.view.Now = now
		got, status := Publish(tt.view)
		if got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
		if tt.view.API == nil {
			continue
		}
		want := compose(tt.view)
		if got == Keep {
			want = tt.view.API.Status
		}
		if !sameStatus(&status, &want) {
			t.Errorf("%s: got another status (-want +got): %s", tt.name, cmp.Diff(want, status))
		}
	}
}
