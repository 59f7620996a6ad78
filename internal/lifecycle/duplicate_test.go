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
		{name: "in two lists", found: seen(15*time.Second, 0), want: DeleteDuplicate},
		{name: "in two lists, the newest of long ago", found: seen(time.Hour, 10*time.Second), change: func(f *Facts) { f.ReadLive = false }, want: RelistAtRest},
		{name: "in two lists, and nobody read", found: seen(15*time.Second, 0), change: func(f *Facts) { f.ReadLive = false }, want: ReadLive},
		{name: "in two lists, and the wanted one is gone", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = nil }, want: Rest},
		{name: "in two lists, and the wanted one is another", found: seen(15*time.Second, 0), change: func(f *Facts) { f.Live = pod("c") }, want: Rest},
		{name: "asked to stop", found: seen(time.Hour, 0), stops: asked(15*time.Second, 1), want: Rest, again: 25 * time.Second},
		{name: "asked to stop long ago", found: seen(time.Hour, 0), stops: asked(41*time.Second, 1), want: DeleteDuplicate},
		{name: "asked to stop twice", found: seen(time.Hour, 0), stops: asked(41*time.Second, 2), want: Rest, again: 9 * time.Second},
		{name: "asked to stop many times", found: seen(time.Hour, 0), stops: asked(0, 90), want: Rest, again: 10*time.Minute + 30*time.Second},
		{name: "in two lists, and the API server took long to say that the wanted one is there", found: seen(time.Hour, 20*time.Second), want: DeleteDuplicate},
		{name: "asked to stop before a list lacked it", found: seen(4*time.Second, 0), stops: asked(time.Hour, 1), want: Rest, again: 6 * time.Second},
		{name: "asked to stop before a list lacked it, and in two lists since", found: seen(10*time.Second, 0), stops: asked(time.Hour, 90), want: DeleteDuplicate},
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
