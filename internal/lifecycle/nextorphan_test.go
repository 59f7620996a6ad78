// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
		{name: "not counted", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.untake(CountOrphan) }, want: CountOrphan},
		{name: "a moment ago", backend: running, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "for long", backend: running, orphan: at(10 * time.Second), want: DeleteOrphan},
		{name: "for long, and ended", backend: failed, orphan: at(10 * time.Second), change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: DeleteOrphan},
		{name: "one that this process ran", backend: running, sent: accepted(running), orphan: at(time.Second), want: Wait, again: time.Second},
		{name: "one that this process ran, for long", backend: running, sent: accepted(running), orphan: at(2 * time.Second), want: DeleteOrphan},
		{name: "one of many", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.OrphanHeld = time.Second }, want: Wait, again: time.Second},
		{name: "one of many, for long", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: Wait, again: time.Minute},
		{name: "its deletion was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Witnessed, f.OrphanHeld = "a", time.Hour }, want: DeleteOrphan},
		{name: "the deletion of another was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Witnessed = "b" }, want: Wait, again: 10 * time.Second},
		{name: "a newer one has its name", api: newer, backend: created, orphan: at(0), want: DeleteOrphan},
		{name: "an older one has its name", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp.Time = now.Add(-2 * time.Hour) }), backend: created, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "one without a time has its name", api: newer, backend: running, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "one that is accepted under another UID", backend: running, sent: Sent{UID: "b", Accepted: true}, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "one that this process did not get accepted", backend: running, sent: Sent{UID: "a"}, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "one with a time, and nothing has its name", backend: created, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "as old as the one that has its name", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp = created.CreationTimestamp }), backend: created, orphan: at(0), want: DeleteOrphan},
		{name: "one was given its name a moment ago, as the stop is of the UID", api: newer, backend: created,
			sent: Sent{UID: "b", Attempted: true, AttemptedAt: now.Add(-29 * time.Second)}, orphan: at(time.Hour), want: DeleteOrphan},
		{name: "not read", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.untake(ReadLive) }, want: ReadLive},
		{name: "it is in the API server", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("a") }, want: Wait, again: 10 * time.Second},
		{name: "another one is", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("b") }, want: DeleteOrphan},
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
	if o := NewOrphan("a", &stopped, now); o != (Orphan{UID: "a", Since: now, Asked: stopped.StopAskedAt, Present: true}) {
		t.Errorf("got %+v for a pod whose stop was acknowledged before", o)
	}
	stopped.StopAcked = false
	if o := NewOrphan("a", &stopped, now); !o.Asked.IsZero() {
		t.Errorf("got %+v for a pod whose stop was not acknowledged", o)
	}
	stopped.StopAcked = true
	if o := NewOrphan("b", &stopped, now); !o.Asked.IsZero() {
		t.Errorf("got %+v for a pod that was not asked to stop", o)
	}
}

// TestHasLeft: it has ended, and it was asked to.
func TestHasLeft(t *testing.T) {
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		left []types.UID
		want bool
	}{
		{name: "nobody asked it to", pod: pod("a", inPhase(corev1.PodFailed))},
		{name: "it was told to", pod: pod("a", inPhase(corev1.PodFailed)), left: []types.UID{"z", "a"}, want: true},
		{name: "another was told to", pod: pod("a", inPhase(corev1.PodFailed)), left: []types.UID{"b"}},
		{name: "it runs", pod: pod("a"), left: []types.UID{"a"}},
	} {
		if got := HasLeft(tt.pod, tt.left); got != tt.want {
			t.Errorf("%s: has left is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestAnotherPodBesideASettledOneIsAnOrphan: the wanted pod is at rest meanwhile, as it waits for nothing.
func TestAnotherPodBesideASettledOneIsAnOrphan(t *testing.T) {
	running, other := pod("a", inPhase(corev1.PodRunning)), pod("b", inPhase(corev1.PodRunning))
	older := pod("b", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	orphan := func(since, asked time.Duration) Orphan {
		o := Orphan{UID: "b", Since: now.Add(-since), Present: true}
		if asked > 0 {
			o.Asked = now.Add(-asked)
		}
		return o
	}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		want   Decision
	}{
		{"none", func(f *Facts) { f.Beside = nil }, Decision{Orphan: OrphanGone}},
		{"none any more", func(f *Facts) { f.Beside, f.Orphan = nil, orphan(time.Hour, time.Minute) }, Decision{Orphan: OrphanGone}},
		{"the pod itself seemed to be one", func(f *Facts) { f.Beside, f.Orphan = nil, Orphan{UID: "a", Present: true} }, Decision{Orphan: OrphanWanted}},
		{"seen for the first time", nil, Decision{Step: BeginOrphan, Backend: other}},
		{"seen after another one", func(f *Facts) { f.Orphan = Orphan{UID: "c", Since: now.Add(-time.Hour), Present: true} }, Decision{Step: BeginOrphan, Backend: other}},
		{"seen 4 s ago", func(f *Facts) { f.Orphan = orphan(4*time.Second, 0) }, Decision{Backend: other, Again: 6 * time.Second}},
		{"seen 10 s ago", func(f *Facts) { f.untake(ReadLive); f.Orphan = orphan(10*time.Second, 0) }, Decision{Step: ReadLive, Backend: other}},
		{"seen 10 s ago, and the API server has the wanted one", func(f *Facts) { f.Orphan = orphan(10*time.Second, 0) }, Decision{Step: DeleteOrphan, Backend: other}},
		{"seen 10 s ago, and the API server has that one", func(f *Facts) { f.Orphan, f.Live = orphan(10*time.Second, 0), other }, Decision{Backend: other, Again: askAgain, Orphan: OrphanWanted}},
		{"created before the wanted one", func(f *Facts) { f.Orphan, f.Beside = orphan(4*time.Second, 0), older }, Decision{Backend: older, Again: 6 * time.Second}},
		{"asked to stop", func(f *Facts) { f.Orphan = orphan(time.Hour, 15*time.Second) }, Decision{Backend: other, Again: 7500 * time.Millisecond}},
		{"asked to stop long ago", func(f *Facts) { f.Orphan = orphan(time.Hour, time.Minute) }, Decision{Step: DeleteOrphan, Backend: other}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: running, Sent: accepted(running)}.facts()
			f.API = pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) })
			f.untake(AskByName)
			f.Taken.Add(CountOrphan)
			f.Taken.Add(ReadLive)
			f.Beside, f.Live = other, f.API
			if tt.change != nil {
				tt.change(&f)
			}
			if got := Next(&f); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestALookAtTheWantedPodKeepsTheStopOfAnother: else it would be asked to stop at once again.
func TestALookAtTheWantedPodKeepsTheStopOfAnother(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	f := given{API: running, Sent: accepted(running), Backend: running}.facts()
	f.Orphan = Orphan{UID: "b", Since: now.Add(-time.Minute), Asked: now, Present: true}
	f.Beside = pod("b", inPhase(corev1.PodRunning))
	if d := Next(&f); d.Step != Rest || d.Orphan != OrphanKept || !d.Shown {
		t.Errorf("got %+v, want Rest and no news of the orphan", d)
	}
	f.Beside = nil
	if d := Next(&f); d.Orphan != OrphanGone {
		t.Errorf("got %+v after a list without it, want that it is gone", d)
	}
}

// TestInstances: which of the pods of a name is the wanted one, and which run beside it.
func TestInstances(t *testing.T) {
	withIDs := func(ids ...string) podOpt {
		return func(p *corev1.Pod) {
			for _, id := range ids {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{ContainerID: id})
			}
		}
	}
	own, other, turned := pod("a", withIDs("1", "2")), pod("b", withIDs("9")), pod("a", withIDs("2", "1"))
	second, third, ended := pod("a", withIDs("3")), pod("a", withIDs("4")), pod("a", withIDs("5"), inPhase(corev1.PodFailed))
	for _, tt := range []struct {
		name    string
		known   *corev1.Pod
		pods    []*corev1.Pod
		own     *corev1.Pod
		further []*corev1.Pod
	}{
		{"none", own, nil, nil, nil},
		{"one", own, []*corev1.Pod{own}, own, nil},
		{"one beside another UID", own, []*corev1.Pod{other, own}, own, nil},
		{"another UID alone", own, []*corev1.Pod{other}, nil, nil},
		{"one without a UID", own, []*corev1.Pod{own, pod("", withIDs("3"))}, own, nil},
		{"a second instance", own, []*corev1.Pod{own, second}, own, []*corev1.Pod{second}},
		{"a second instance, listed first", own, []*corev1.Pod{second, own}, own, []*corev1.Pod{second}},
		{"a second instance that is known as the pod", second, []*corev1.Pod{own, second}, second, []*corev1.Pod{own}},
		{"two more", own, []*corev1.Pod{own, second, third}, own, []*corev1.Pod{second, third}},
		{"one that has ended", own, []*corev1.Pod{own, ended}, own, nil},
		{"the same one, listed twice", own, []*corev1.Pod{own, turned}, own, nil},
		{"a second one of which no containers are known", own, []*corev1.Pod{own, pod("a")}, own, nil},
		{"a second one that tells of a container without an ID", own, []*corev1.Pod{own, pod("a", withIDs(""))}, own, nil},
	} {
		got, further := Instances("a", &tt.known.Status, tt.pods)
		if got != tt.own || !slices.Equal(further, tt.further) {
			t.Errorf("%s: got %v and %v, want %v and %v", tt.name, got, further, tt.own, tt.further)
		}
	}
}
