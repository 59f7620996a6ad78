// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func event(kind watch.EventType, name string, phase corev1.PodPhase) watch.Event {
	return watch.Event{Type: kind, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "7"}, Status: corev1.PodStatus{Phase: phase}}}
}

func TestTrackerSeesEachPodOnce(t *testing.T) {
	before, after := watch.NewFakeWithChanSize(16, false), watch.NewFakeWithChanSize(16, false)
	for _, e := range []watch.Event{
		event(watch.Added, podName(0), corev1.PodPending),
		event(watch.Modified, podName(0), corev1.PodRunning),
		event(watch.Modified, podName(0), corev1.PodRunning),
		event(watch.Modified, "stranger", corev1.PodRunning),
	} {
		before.Action(e.Type, e.Object)
	}
	before.Stop()
	for _, e := range []watch.Event{
		event(watch.Deleted, podName(0), corev1.PodSucceeded),
		event(watch.Added, podName(1), corev1.PodRunning),
		event(watch.Deleted, podName(1), corev1.PodRunning),
	} {
		after.Action(e.Type, e.Object)
	}
	tr := newTracker(2)
	resumedAt := ""
	err := tr.run(before, func(version string) (watch.Interface, error) {
		resumedAt = version
		return after, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if resumedAt != "7" || tr.resumed.Load() != 1 {
		t.Errorf("resumed %d times, at version %q, want once at 7", tr.resumed.Load(), resumedAt)
	}
	<-tr.allRunning
	<-tr.allGone
	for i := range 2 {
		if tr.running[i].IsZero() || tr.gone[i].Before(tr.running[i]) {
			t.Errorf("pod %d: running at %v, gone at %v", i, tr.running[i], tr.gone[i])
		}
	}
}

func TestAWatchThatCannotGoOnIsAnError(t *testing.T) {
	gone := errors.New("gone")
	again := func(string) (watch.Interface, error) { return nil, gone }
	ended := watch.NewFake()
	ended.Stop()
	if err := newTracker(1).run(ended, again); !errors.Is(err, gone) {
		t.Errorf("after its end: got %v, want %v", err, gone)
	}
	failed := watch.NewFakeWithChanSize(1, false)
	failed.Error(&metav1.Status{})
	if err := newTracker(1).run(failed, again); !errors.Is(err, errWatchEnded) {
		t.Errorf("after an error event: got %v, want %v", err, errWatchEnded)
	}
}

func TestPhaseTimes(t *testing.T) {
	begin := time.Now()
	at := func(ms ...int) (times []time.Time) {
		for _, m := range ms {
			times = append(times, begin.Add(time.Duration(m)*time.Millisecond))
		}
		return times
	}
	p := phase{begin: begin, asked: at(10, 30, 20), seen: at(100, 50, 70)}
	if p.clientTime() != 30*time.Millisecond || p.totalTime() != 100*time.Millisecond || p.lagTime() != 70*time.Millisecond {
		t.Errorf("got client %v, total %v, lag %v", p.clientTime(), p.totalTime(), p.lagTime())
	}
	if each := p.perPod(); percentileOf(each, 50) != 50*time.Millisecond || percentileOf(each, 99) != 90*time.Millisecond {
		t.Errorf("got %v, median %v", each, percentileOf(each, 50))
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	values := make([]int, 1000)
	for i := range values {
		values[i] = i + 1
	}
	for p, want := range map[int]int{0: 1, 50: 500, 99: 990, 100: 1000} {
		if got := percentileOf(values, p); got != want {
			t.Errorf("percentile %d: got %d, want %d", p, got, want)
		}
	}
	if got := percentileOf([]int{7}, 99); got != 7 {
		t.Errorf("of one value: got %d", got)
	}
}

func TestForAllDoesEachOnceAndStopsAtAnError(t *testing.T) {
	var calls [100]atomic.Int32
	answered, err := forAll(t.Context(), 7, len(calls), func(_ context.Context, i int) error {
		calls[i].Add(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 || answered[i].IsZero() {
			t.Errorf("%d: %d calls, answered at %v", i, n, answered[i])
		}
	}

	broken := errors.New("broken")
	var after atomic.Int32
	_, err = forAll(t.Context(), 2, 1000, func(ctx context.Context, i int) error {
		if i == 3 {
			return broken
		}
		if i > 3 {
			after.Add(1)
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, broken) || after.Load() > 1 {
		t.Errorf("got %v and %d more calls", err, after.Load())
	}
}
