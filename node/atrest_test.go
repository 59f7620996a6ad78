// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
)

// TestLookWithoutAWriteRests checks when a pod is at rest: nothing had to be written, and no write of the pod is pending.
func TestLookWithoutAWriteRests(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		state  func(*podState)
		want   string
	}{
		"nothing to write":      {func(*corev1.Pod) {}, func(*podState) {}, "7"},
		"deleted":               {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, func(*podState) {}, ""},
		"a condition to remove": {func(*corev1.Pod) {}, func(st *podState) { st.dropped = []corev1.PodConditionType{"c"} }, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", ResourceVersion: "7"}}
		test.change(pod)
		m := statusManagerOf(t, pod)
		m.states.change("d/p", anyPod, test.state)
		if _, err := m.writePodStatus(t.Context(), "d/p"); err != nil {
			t.Fatal(err)
		}
		if got := m.states.get("d/p").restsAt; got != test.want {
			t.Errorf("%s: the pod rests at version %q, want %q", name, got, test.want)
		}
	}
}

// statusManagerOf returns a status manager that tracks the pod.
func statusManagerOf(t testing.TB, pod *corev1.Pod) *statusManager {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := indexer.Add(pod); err != nil {
		t.Fatal(err)
	}
	c := &podCore{
		podCache: podCache{pods: corev1listers.NewPodLister(indexer), wanted: func(context.Context, *corev1.Pod) bool { return true }},
		states:   podStates{m: map[string]*podState{}},
		lanes:    lanes{syncLane: keyqueue.New(nil), statusLane: keyqueue.New(nil)},
	}
	c.states.changeOrBegin("d/p", func(st *podState) { st.sent.UID = pod.UID })
	return &statusManager{podCore: c, admission: &podAdmission{}, hostIPs: func() []corev1.HostIP { return nil }}
}

// BenchmarkResyncAtRest measures a resync of a pod that needs nothing.
func BenchmarkResyncAtRest(b *testing.B) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", ResourceVersion: "7"}}
	m := statusManagerOf(b, pod)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.writePodStatus(b.Context(), "d/p"); err != nil {
			b.Fatal(err)
		}
	}
	if m.states.get("d/p").restsAt == "" {
		b.Error("the pod was not at rest")
	}
}

// TestResyncOfAPodAtRestAsksForNoStatus: a resync repeats thousands of pods. Only pods that have changed on either side are added to the
// status lane.
func TestResyncOfAPodAtRestAsksForNoStatus(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", ResourceVersion: "7"}}
	newer := pod.DeepCopy()
	newer.ResourceVersion = "8"
	for name, test := range map[string]struct {
		before *corev1.Pod
		change func(*podStates)
		want   int
	}{
		"nothing has changed":              {pod, func(*podStates) {}, 0},
		"the API server's pod has changed": {newer, func(*podStates) {}, 1},
		"the sync lane has changed it":     {pod, func(s *podStates) { s.sync("d/p", "u", func(st syncWriter) { st.sent.Attempted = true }) }, 1},
		"its failures have changed":        {pod, func(s *podStates) { s.errors("d/p", "u", (*errorMemory).clearError) }, 1},
		"nobody has looked so far":         {pod, func(s *podStates) { s.change("d/p", "u", func(st *podState) { st.restsAt = "" }) }, 1},
	} {
		c := statusManagerOf(t, pod).podCore
		c.states.change("d/p", "u", func(st *podState) { st.restsAt = pod.ResourceVersion })
		test.change(&c.states)
		(&podEvents{c}).markUpdated(test.before, pod)
		if n, _ := c.statusLane.Len(0); n != test.want {
			t.Errorf("%s: the status lane has %d keys, want %d", name, n, test.want)
		}
		if n, _ := c.syncLane.Len(0); test.before == pod && n != 1 {
			t.Errorf("%s: the sync lane has %d keys, want one", name, n)
		}
	}
}
