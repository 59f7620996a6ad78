// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// TestBasisKnowsWhatAPodAtRestDependsOn: each part of it that changes is a reason to look again.
func TestBasisKnowsWhatAPodAtRestDependsOn(t *testing.T) {
	api := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}}
	at := basisOf(api, &podState{})
	if at == (basis{}) || at != basisOf(api.DeepCopy(), &podState{}) {
		t.Fatal("a pod at rest has no basis, or two")
	}
	for name, change := range map[string]func(*podState){
		"report":     func(st *podState) { st.report = &report{} },
		"syncErr":    func(st *podState) { st.syncErr = &lifecycle.SyncError{} },
		"failure":    func(st *podState) { st.failure = &lifecycle.PodFailure{} },
		"stopped":    func(st *podState) { st.stopped = true },
		"stop asked": func(st *podState) { st.sent.StopAskedAt = time.Now() },
		"attempted":  func(st *podState) { st.sent.Attempted = true },
		"generation": func(st *podState) { st.sent.Generation = 2 },
		"reflected":  func(st *podState) { st.reflected = 2 },
		"accepted":   func(st *podState) { st.sent.AcceptedAt = time.Now() },
		"dropped":    func(st *podState) { st.dropped = []corev1.PodConditionType{"c"} },
	} {
		var st podState
		if change(&st); basisOf(api, &st) == at {
			t.Errorf("%s: nobody would look again", name)
		}
	}
	newer := api.DeepCopy()
	newer.ResourceVersion = "8"
	if basisOf(newer, &podState{}) == at {
		t.Error("another version: nobody would look again")
	}
	for name, change := range map[string]func(*corev1.Pod){
		"deleted":    func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} },
		"no version": func(pod *corev1.Pod) { pod.ResourceVersion = "" },
	} {
		pod := api.DeepCopy()
		if change(pod); basisOf(pod, &podState{}) != (basis{}) {
			t.Errorf("%s: is at rest", name)
		}
	}
	// A field that is added to the view needs a word here. NoEphemeral is what the provider declared
	// before it ran. HostIPs are the node's: an address that it learns late is published with the next news of a pod.
	// Relapsed matters for pods that are deleted, and those are not at rest.
	if n := reflect.TypeFor[lifecycle.View]().NumField(); n != 15 {
		t.Errorf("lifecycle.View has %d fields, not 15: does the basis know of what is new?", n)
	}
}

// BenchmarkResyncAtRest is a resync's look at a pod that needs nothing.
func BenchmarkResyncAtRest(b *testing.B) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", ResourceVersion: "7"}}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := indexer.Add(pod); err != nil {
		b.Fatal(err)
	}
	c := &podCore{
		podCache: podCache{pods: corev1listers.NewPodLister(indexer), wanted: func(context.Context, *corev1.Pod) bool { return true }},
		states:   podStates{m: map[string]*podState{}},
	}
	m := &statusManager{podCore: c, admission: &podAdmission{}, hostIPs: func() []corev1.HostIP { return nil }}
	c.states.anew("d/p", func(st *podState) { st.sent.UID = "u" })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.writePodStatus(b.Context(), "d/p"); err != nil {
			b.Fatal(err)
		}
	}
	if c.states.get("d/p").synced == (basis{}) {
		b.Error("the pod was not at rest")
	}
}

// TestResyncOfAPodAtRestAsksForNoStatus: a resync shows thousands of pods again. The status lane is
// told of those only that have changed, here or there.
func TestResyncOfAPodAtRestAsksForNoStatus(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", ResourceVersion: "7"}}
	newer := pod.DeepCopy()
	newer.ResourceVersion = "8"
	for name, test := range map[string]struct {
		before *corev1.Pod
		change func(*podState)
		want   int
	}{
		"nothing has changed":      {pod, func(*podState) {}, 0},
		"the API server's pod":     {newer, func(*podState) {}, 1},
		"the provider's word":      {pod, func(st *podState) { st.report = &report{uid: "u"} }, 1},
		"nobody has looked so far": {pod, func(st *podState) { st.synced = basis{} }, 1},
	} {
		c := &podCore{lanes: lanes{syncLane: keyqueue.New(nil), statusLane: keyqueue.New(nil)}}
		c.states.m = map[string]*podState{}
		c.states.anew("d/p", func(st *podState) { st.sent.UID, st.synced = "u", basisOf(pod, st) })
		c.states.change("d/p", anyPod, test.change)
		(&podEvents{c}).markUpdated(test.before, pod)
		if n, _ := c.statusLane.Len(0); n != test.want {
			t.Errorf("%s: the status lane has %d keys, want %d", name, n, test.want)
		}
		if n, _ := c.syncLane.Len(0); test.before == pod && n != 1 {
			t.Errorf("%s: the sync lane has %d keys, want one", name, n)
		}
	}
}
