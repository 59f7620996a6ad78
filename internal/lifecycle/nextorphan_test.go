// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOrphanIsDeletedOnEvidence holds the conditions of a deletion: the pod was an orphan for a while, there are not many orphans, and a
// live read confirms it.
func TestOrphanIsDeletedOnEvidence(t *testing.T) {
	running, failed := pod("a", inPhase(corev1.PodRunning)), pod("a", inPhase(corev1.PodFailed))
	at := func(ago time.Duration) Other { return Other{UID: "a", Since: now.Add(-ago)} }
	stopping := func(ago time.Duration) Other { return Other{UID: "a", Since: now.Add(-ago), Asked: now.Add(-ago)} }
	newer, created := pod("b"), pod("a", inPhase(corev1.PodRunning))
	created.CreationTimestamp, newer.CreationTimestamp = metav1.Time{Time: now.Add(-time.Hour)}, metav1.Time{Time: now.Add(-time.Minute)}
	for _, tt := range []struct {
		name    string
		api     *corev1.Pod
		backend *corev1.Pod
		sent    Sent
		orphan  Other
		change  func(*Facts)
		want    Step
		again   time.Duration
	}{
		{name: "a moment ago", backend: running, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "for long", backend: running, orphan: at(10 * time.Second), want: DeleteOrphan},
		{name: "for long, and ended", backend: failed, orphan: at(10 * time.Second), change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: DeleteOrphan},
		{name: "one that this process ran", backend: running, sent: accepted(running), orphan: at(time.Second), want: Wait, again: time.Second},
		{name: "one that this process ran, for long", backend: running, sent: accepted(running), orphan: at(2 * time.Second), want: DeleteOrphan},
		{name: "one of many", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.OrphanHeld = time.Second }, want: Wait, again: time.Second},
		{name: "one of many, for long", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: Wait, again: time.Minute},
		{name: "its deletion was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Others[0].Deleted, f.OrphanHeld = true, time.Hour }, want: DeleteOrphan},
		{name: "the deletion of another was seen", backend: running, orphan: at(0), change: func(f *Facts) { f.Others = append(f.Others, Other{UID: "b", Deleted: true}) }, want: Wait, again: 10 * time.Second},
		{name: "a newer one has its name", api: newer, backend: created, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "a newer one has its name, for long", api: newer, backend: created, orphan: at(10 * time.Second), change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: DeleteOrphan},
		{name: "its deletion was seen, and an older one has its name", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp.Time = now.Add(-2 * time.Hour) }), backend: created, orphan: at(0),
			change: func(f *Facts) { f.Others[0].Deleted = true }, want: DeleteOrphan},
		{name: "an older one has its name", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp.Time = now.Add(-2 * time.Hour) }), backend: created, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "one without a time has its name", api: newer, backend: running, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "one that is accepted under another UID", backend: running, sent: Sent{UID: "b", Accepted: true}, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "one that this process did not get accepted", backend: running, sent: Sent{UID: "a"}, orphan: at(4 * time.Second), want: Wait, again: 6 * time.Second},
		{name: "one with a time, and nothing has its name", backend: created, orphan: at(0), want: Wait, again: 10 * time.Second},
		{name: "as old as the one that has its name, one of many", api: pod("b", func(p *corev1.Pod) { p.CreationTimestamp = created.CreationTimestamp }), backend: created, orphan: at(10 * time.Second),
			change: func(f *Facts) { f.OrphanHeld = time.Hour }, want: DeleteOrphan},
		{name: "one was given its name a moment ago, as the stop is of the UID", api: newer, backend: created,
			sent: Sent{UID: "b", Attempted: true, AttemptedAt: now.Add(-29 * time.Second)}, orphan: at(time.Hour), want: DeleteOrphan},
		{name: "not read", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.untake(ReadLive) }, want: ReadLive},
		{name: "it is in the API server", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("a") }, want: Wait, again: 10 * time.Second},
		{name: "another one is", backend: running, orphan: at(time.Hour), change: func(f *Facts) { f.Live = pod("b") }, want: DeleteOrphan},
		{name: "it is stopping", backend: running, orphan: stopping(4 * time.Second), want: Wait, again: 2 * time.Second},
		{name: "it was asked to stop a moment ago", backend: running, orphan: stopping(0), want: Wait, again: ReportedWithin},
		{name: "it is stopping for long", backend: running, orphan: stopping(39 * time.Second), want: Wait, again: 10 * time.Second},
		{name: "it does not stop", backend: running, orphan: stopping(40 * time.Second), want: DeleteOrphan},
		{name: "it was not shown since it was told to stop", backend: running, orphan: stopping(40 * time.Second), change: func(f *Facts) { f.Others[0].Stale = true }, want: Wait, again: 10 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: tt.api, Backend: tt.backend, Sent: tt.sent}.facts()
			f.Others, f.Live = []Other{tt.orphan}, nil
			f.Others[0].Pod = tt.backend
			if tt.change != nil {
				tt.change(&f)
			}
			if d := Next(&f); d.Step != tt.want || d.Again != tt.again {
				t.Errorf("got step %d again %v, want %d again %v", d.Step, d.Again, tt.want, tt.again)
			}
		})
	}
}

// TestShowOther checks the time of an orphan, and that a stop still counts if the backend acknowledged it while the pod was in the API
// server.
func TestShowOther(t *testing.T) {
	running := pod("a", inPhase(corev1.PodRunning))
	stopped := asked(accepted(running), time.Minute, 1, true)
	before := []Other{{UID: "a", Since: now.Add(-time.Hour)}, {UID: "b", Deleted: true}}
	first := slices.Clone(before)
	want := []Other{{UID: "a", Since: now.Add(-time.Hour), Pod: running, Asked: stopped.StopAskedAt}, {UID: "b", Deleted: true}}
	if got := ShowOther(before, running, &stopped, now); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !slices.Equal(before, first) {
		t.Errorf("the list has changed to %+v", before)
	}
	want[0] = Other{UID: "a", Since: now.Add(-time.Hour), Pod: running, Asked: now}
	if got := ShowOther([]Other{{UID: "a", Since: now.Add(-time.Hour), Asked: now}, before[1]}, running, &stopped, now); !slices.Equal(got, want) {
		t.Errorf("asked to stop as an orphan: got %+v, want %+v", got, want)
	}
	for name, sent := range map[string]Sent{
		"the stop was not acknowledged": asked(accepted(running), time.Minute, 1, false),
		"another pod was asked to stop": asked(accepted(pod("b")), time.Minute, 1, true),
	} {
		if got := ShowOther(nil, running, &sent, now); len(got) != 1 || got[0] != (Other{UID: "a", Since: now, Pod: running}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestDropUnlisted checks that a list proves nothing about pods that were first seen or asked to stop after its request.
func TestDropUnlisted(t *testing.T) {
	long, since := now.Add(-time.Minute), now.Add(time.Second)
	for _, tt := range []struct {
		name  string
		other Other
		keep  bool
	}{
		{"listed", Other{UID: "a", Since: long}, true},
		{"not listed", Other{UID: "b", Since: long, Asked: long}, false},
		{"not listed, and only its deletion is known", Other{UID: "b", Deleted: true}, false},
		{"not listed, and met at the time of the list", Other{UID: "b", Since: now}, false},
		{"not listed, and met since then", Other{UID: "b", Since: since}, true},
		{"not listed, and asked to stop since then", Other{UID: "b", Since: long, Asked: since}, true},
	} {
		others := []Other{tt.other}
		if got := DropUnlisted(others, []*corev1.Pod{pod("a")}, now); (len(got) == 1) != tt.keep {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if others[0] != tt.other {
			t.Errorf("%s: the list has changed to %+v", tt.name, others)
		}
	}
}

// TestHideUnlisted checks that a list with gaps does not drop a pod that was asked to stop.
func TestHideUnlisted(t *testing.T) {
	long := now.Add(-time.Minute)
	others := []Other{{UID: "a", Since: long, Asked: long, Pod: pod("a")}, {UID: "b", Since: long, Asked: long, Pod: pod("b")}, {UID: "c", Since: long, Pod: pod("c")},
		{UID: "d", Since: now.Add(time.Second), Pod: pod("d")}, {UID: "e", Since: long, Pod: pod("e")}}
	before := slices.Clone(others)
	want := []Other{others[0], {UID: "b", Since: long, Asked: long}, others[3], others[4]}
	if got := HideUnlisted(others, []*corev1.Pod{pod("a"), pod("e")}, now); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !slices.Equal(others, before) {
		t.Errorf("the list has changed to %+v", others)
	}
}

// TestHasLeft checks that a pod has left only if it has ended after a stop request.
func TestHasLeft(t *testing.T) {
	failed := pod("a", inPhase(corev1.PodFailed))
	for _, tt := range []struct {
		name  string
		other Other
		want  bool
	}{
		{"nobody asked it to", Other{Pod: failed}, false},
		{"it was told to", Other{Pod: failed, Asked: now}, true},
		{"it runs", Other{Pod: pod("a"), Asked: now}, false},
		{"it was not shown", Other{Asked: now}, false},
	} {
		if got := tt.other.HasLeft(); got != tt.want {
			t.Errorf("%s: has left is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestAnotherPodBesideASettledOneIsAnOrphan holds that the wanted pod remains at rest, because it does not wait for the orphan.
func TestAnotherPodBesideASettledOneIsAnOrphan(t *testing.T) {
	running, other := pod("a", inPhase(corev1.PodRunning)), pod("b", inPhase(corev1.PodRunning))
	older := pod("b", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) })
	orphan := func(pod *corev1.Pod, since, asked time.Duration) []Other {
		o := Other{UID: "b", Pod: pod, Since: now.Add(-since)}
		if asked > 0 {
			o.Asked = now.Add(-asked)
		}
		return []Other{o}
	}
	for _, tt := range []struct {
		name   string
		others []Other
		change func(*Facts)
		want   Decision
	}{
		{"none", nil, nil, Decision{}},
		{"none any more", orphan(nil, time.Hour, time.Minute), nil, Decision{}},
		{"ended", orphan(pod("b", inPhase(corev1.PodFailed)), time.Hour, 0), nil, Decision{}},
		{"ended after a request", orphan(pod("b", inPhase(corev1.PodFailed)), time.Hour, time.Minute), nil, Decision{}},
		{"seen 4 s ago", orphan(other, 4*time.Second, 0), nil, Decision{Backend: other, Again: 6 * time.Second}},
		{"seen 4 s ago, and another one 5 s ago", append(orphan(other, 4*time.Second, 0), Other{UID: "c", Pod: older, Since: now.Add(-5 * time.Second)}), nil, Decision{Backend: older, Again: 5 * time.Second}},
		{"seen 5 s ago, and another one 4 s ago", append(orphan(other, 5*time.Second, 0), Other{UID: "c", Pod: older, Since: now.Add(-4 * time.Second)}), nil, Decision{Backend: older, Again: 5 * time.Second}},
		{"its deletion was seen a moment ago", []Other{{UID: "b", Pod: other, Since: now.Add(-time.Second), Deleted: true}}, nil, Decision{Backend: other, Again: 9 * time.Second}},
		{"its deletion was seen a moment ago, and the wanted one has ended", []Other{{UID: "b", Pod: other, Since: now.Add(-time.Second), Deleted: true}}, func(f *Facts) {
			f.API, f.Sent.Accepted, f.Over = pod("a", inPhase(corev1.PodFailed)), false, true
		}, Decision{Backend: other, Again: 9 * time.Second}},
		{"its deletion was seen a moment ago, and the wanted one has stopped", []Other{{UID: "b", Pod: other, Since: now.Add(-time.Second), Deleted: true}}, func(f *Facts) {
			f.API, f.Sent.Accepted, f.Stopped, f.Reported = pod("a", deleting(1)), false, true, ReportedEnded
		}, Decision{Backend: other, Again: 9 * time.Second}},
		{"seen 4 s ago, and another one long ago", append(orphan(other, 4*time.Second, 0), Other{UID: "c", Pod: older, Since: now.Add(-time.Hour)}), nil, Decision{Step: DeleteOrphan, Backend: older}},
		{"seen 10 s ago", orphan(other, 10*time.Second, 0), func(f *Facts) { f.untake(ReadLive) }, Decision{Step: ReadLive, Backend: other}},
		{"seen 10 s ago, and the API server has the wanted one", orphan(other, 10*time.Second, 0), nil, Decision{Step: DeleteOrphan, Backend: other}},
		{"seen 10 s ago, and the API server has that one", orphan(other, 10*time.Second, 0), func(f *Facts) { f.Live = other }, Decision{Backend: other, Again: askAgain}},
		{"created before the wanted one", orphan(older, 4*time.Second, 0), nil, Decision{Backend: older, Again: 6 * time.Second}},
		{"asked to stop", orphan(other, time.Hour, 15*time.Second), nil, Decision{Backend: other, Again: 7500 * time.Millisecond}},
		{"asked to stop long ago", orphan(other, time.Hour, time.Minute), nil, Decision{Step: DeleteOrphan, Backend: other}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := given{API: running, Sent: accepted(running)}.facts()
			f.API = pod("a", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) })
			f.untake(Look)
			f.Others, f.Live = tt.others, f.API
			if tt.change != nil {
				tt.change(&f)
			}
			if got := Next(&f); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestHasOrphan checks which of the other pods cast doubt on the API server.
func TestHasOrphan(t *testing.T) {
	running := pod("b", inPhase(corev1.PodRunning), func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now) })
	wanted := pod("a")
	wanted.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	for _, tt := range []struct {
		name   string
		facts  given
		others []Other
		want   bool
	}{
		{"none", given{}, nil, false},
		{"one that runs", given{}, []Other{{UID: "b", Pod: running}}, true},
		{"one that runs, beside one that was not shown", given{}, []Other{{UID: "c"}, {UID: "b", Pod: running}}, true},
		{"one that was not shown", given{}, []Other{{UID: "b"}}, false},
		{"one that has ended", given{}, []Other{{UID: "b", Pod: pod("b", inPhase(corev1.PodFailed))}}, false},
		{"one whose deletion was seen", given{}, []Other{{UID: "b", Pod: running, Deleted: true}}, false},
		{"one in the place of the wanted pod", given{API: wanted}, []Other{{UID: "b", Pod: running}}, true},
		{"one that is older than the wanted pod", given{API: pod("a", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now) })}, []Other{{UID: "b", Pod: running}}, false},
		{"one beside the wanted pod", given{API: wanted, Sent: accepted(wanted)}, []Other{{UID: "b", Pod: running}}, false},
		{"the wanted pod itself", given{API: wanted}, []Other{{UID: "a", Pod: pod("a", inPhase(corev1.PodRunning))}}, false},
	} {
		f := tt.facts.facts()
		f.Others = tt.others
		if got := f.HasOrphan(); got != tt.want {
			t.Errorf("%s: has an orphan is %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestInstances checks which of the pods of a name is the wanted instance, and which are additional instances.
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
