// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestDuplicateIsStoppedOnEvidence: it is in two lists, and the wanted pod is in the API server.
func TestDuplicateIsStoppedOnEvidence(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	second := pod("b", inPhase(corev1.PodRunning))
	seen := func(since, newest time.Duration) *Duplicate {
		return &Duplicate{Pod: second, Since: now.Add(-since), Seen: now.Add(-newest)}
	}
	asked := func(ago time.Duration, tries int) DuplicateStops {
		return DuplicateStops{At: now.Add(-ago), Tries: tries}
	}
	failed := func(ago time.Duration, tries int) DuplicateStops {
		return DuplicateStops{At: now.Add(-ago), Tries: tries, Failed: true}
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
		{name: "in one list for long", found: seen(11*time.Second, 11*time.Second), change: func(f *Facts) { f.ReadLive = false }, want: RelistAtRest},
		{name: "in one list for long, and in one of before that", found: seen(11*time.Second, 2*time.Second), change: func(f *Facts) { f.ReadLive = false }, want: RelistAtRest},
		{name: "in two lists that are far enough apart", found: seen(12*time.Second, 2*time.Second), change: func(f *Facts) { f.ReadLive = false }, want: ReadLive},
		{name: "in two lists", found: seen(15*time.Second, 0), want: DeleteDuplicate},
		{name: "in two lists, the newest of long ago", found: seen(time.Hour, 10*time.Second), change: func(f *Facts) { f.ReadLive = false }, want: RelistAtRest},
		{name: "in two lists, and nobody read", found: seen(15*time.Second, 0), change: func(f *Facts) { f.ReadLive = false }, want: ReadLive},
		{name: "in two lists, and the wanted one is gone", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = nil }, want: Rest},
		{name: "in two lists, and the wanted one is another", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = pod("c") }, want: Rest},
		{name: "asked to stop", found: seen(time.Hour, 0), stops: asked(15*time.Second, 1), want: Rest, again: 25 * time.Second},
		{name: "asked to stop long ago", found: seen(time.Hour, 0), stops: asked(41*time.Second, 1), want: DeleteDuplicate},
		{name: "asked to stop twice", found: seen(time.Hour, 0), stops: asked(41*time.Second, 2), want: Rest, again: 9 * time.Second},
		{name: "asked to stop many times", found: seen(time.Hour, 0), stops: asked(0, 90), want: Rest, again: 10*time.Minute + 30*time.Second},
		{name: "refused to stop", found: seen(time.Hour, 8*time.Second), stops: failed(9*time.Second, 1), want: Wait, again: time.Second},
		{name: "refused to stop, and in no list since", found: seen(time.Hour, 9*time.Second), stops: failed(10*time.Second, 1),
			change: func(f *Facts) { f.ReadLive = false }, want: Relist},
		{name: "refused to stop, and in a list since", found: seen(time.Hour, 0), stops: failed(10*time.Second, 1), want: DeleteDuplicate},
		{name: "in two lists, and the API server took long to say that the wanted one is there", found: seen(time.Hour, 20*time.Second), want: DeleteDuplicate},
		{name: "asked to stop as soon as it was found", found: seen(4*time.Second, 0), stops: asked(4*time.Second, 1), want: Rest, again: 36 * time.Second},
		{name: "asked to stop before a list lacked it", found: seen(4*time.Second, 0), stops: asked(time.Hour, 1), want: Rest, again: 6 * time.Second},
		{name: "asked to stop before a list lacked it, and in two lists since", found: seen(10*time.Second, 0), stops: asked(time.Hour, 90), want: DeleteDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: running, Sent: accepted(running)}.facts()
			f.Duplicate, f.Stops, f.ByName = tt.found, tt.stops, false
			if tt.change != nil {
				tt.change(&f)
			}
			d := Next(&f)
			if d.Step != tt.want || d.Again != tt.again {
				t.Errorf("got step %d again %v, want %d again %v", d.Step, d.Again, tt.want, tt.again)
			}
			if d.Step == DeleteDuplicate && d.Backend != second {
				t.Errorf("got the stop of %+v", d.Backend)
			}
		})
	}
	first := (*Duplicate)(nil).At(second, now)
	if first.Pod != second || !first.Since.Equal(now) || !first.Seen.Equal(now) {
		t.Errorf("got %+v for the first list", first)
	}
	if later := first.At(second, now.Add(time.Minute)); later.Pod != second || !later.Since.Equal(now) || !later.Seen.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v for the second list", later)
	}
	if other := first.At(pod("c"), now.Add(time.Minute)); !other.Since.Equal(now.Add(time.Minute)) {
		t.Errorf("got %+v for another duplicate", other)
	}
	if gone := first.At(nil, now); gone != nil {
		t.Errorf("got %+v for a list without it", gone)
	}
}

// TestDuplicateAmong: what runs beside the wanted pod, if it can be told which is which.
func TestDuplicateAmong(t *testing.T) {
	withIDs := func(ids ...string) podOpt {
		return func(p *corev1.Pod) {
			for _, id := range ids {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{ContainerID: id})
			}
		}
	}
	own, other, ended := pod("a", withIDs("1", "2")), pod("b"), pod("b", inPhase(corev1.PodFailed))
	turned, second, third := pod("a", withIDs("2", "1")), pod("a", withIDs("3")), pod("a", withIDs("4"))
	for _, tt := range []struct {
		name  string
		known *corev1.Pod
		pods  []*corev1.Pod
		want  *corev1.Pod
	}{
		{"none", own, []*corev1.Pod{own}, nil},
		{"nothing", own, nil, nil},
		{"another UID", own, []*corev1.Pod{own, other}, other},
		{"another UID, listed first", own, []*corev1.Pod{other, own}, other},
		{"another UID, and not the wanted one", own, []*corev1.Pod{other}, nil},
		{"another UID that has ended", own, []*corev1.Pod{own, ended}, nil},
		{"one that has ended, and one that runs", own, []*corev1.Pod{own, ended, other}, other},
		{"one without a UID", own, []*corev1.Pod{own, pod("", withIDs("3"))}, nil},
		{"a second instance", own, []*corev1.Pod{own, second}, second},
		{"a second instance, listed first", own, []*corev1.Pod{second, own}, second},
		{"a second instance, listed first by one that is known to be it", second, []*corev1.Pod{own, second}, own},
		{"two more instances", own, []*corev1.Pod{own, second, third}, second},
		{"the same one, listed twice", own, []*corev1.Pod{own, turned}, nil},
		{"a second one of which no containers are known", own, []*corev1.Pod{own, pod("a")}, nil},
		{"a second one, of one whose containers are not known", pod("a"), []*corev1.Pod{pod("a"), second}, nil},
		{"another UID, listed first, beside one whose containers are not known", pod("a"), []*corev1.Pod{other, own}, other},
		{"a second one that tells of a container without an ID", pod("a"), []*corev1.Pod{pod("a", withIDs("")), second}, nil},
	} {
		if got := DuplicateAmong("a", &tt.known.Status, tt.pods); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
