// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func pod(node, name, uid, version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version, ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// journal records the events that a node gets.
type journal struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take returns the events since the last call, in alphabetical order.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.Sort(j.lines)
	text := strings.Join(j.lines, ", ")
	j.lines = nil
	return text
}

func (j *journal) OnAdd(obj any, first bool) {
	p := obj.(*corev1.Pod)
	j.note("add %s/%s first=%v", p.Name, p.UID, first)
}

func (j *journal) OnUpdate(before, after any) {
	j.note("update %s %s→%s", after.(*corev1.Pod).Name, before.(*corev1.Pod).ResourceVersion, after.(*corev1.Pod).ResourceVersion)
}

func (j *journal) OnDelete(obj any) {
	if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		j.note("lost %s/%s", t.Key, t.Obj.(*corev1.Pod).UID)
		return
	}
	j.note("delete %s/%s", obj.(*corev1.Pod).Name, obj.(*corev1.Pod).UID)
}

// twoNodes returns a watch of the nodes a and b, and a journal of each node's events.
func twoNodes(t *testing.T) (p *Pods, router *podRouter, a, b *journal) {
	t.Helper()
	p = NewPods(nil, []string{"a", "b"}, 0)
	a, b = &journal{}, &journal{}
	for node, j := range map[string]*journal{"a": a, "b": b} {
		if _, err := p.View(node).Informer().AddEventHandler(j); err != nil {
			t.Fatal(err)
		}
	}
	return p, (*podRouter)(p), a, b
}

func replace(r *podRouter, pods ...*corev1.Pod) {
	var items []any
	for _, p := range pods {
		items = append(items, p)
	}
	_ = r.Replace(items, "1")
}

func expect(t *testing.T, what string, j *journal, want string) {
	t.Helper()
	if got := j.take(); got != want {
		t.Errorf("%s was shown %q, want %q", what, got, want)
	}
}

func TestEachNodeSeesItsOwnPods(t *testing.T) {
	p, r, a, b := twoNodes(t)
	informer := p.View("a").Informer()
	if informer.HasSynced() {
		t.Error("it has synced before there was a list")
	}
	replace(r, pod("a", "x", "1", "1"), pod("b", "y", "2", "1"), pod("foreign", "z", "3", "1"), pod("", "unbound", "4", "1"))
	expect(t, "node a", a, "add x/1 first=true")
	expect(t, "node b", b, "add y/2 first=true")
	if !informer.HasSynced() {
		t.Error("it has not synced after the first list")
	}

	_ = r.Add(pod("a", "new", "5", "2"))
	_ = r.Update(pod("a", "x", "1", "3"))
	_ = r.Add(pod("foreign", "other", "6", "2"))
	_ = r.Delete(pod("foreign", "z", "3", "4"))
	_ = r.Delete(pod("b", "y", "2", "5"))
	expect(t, "node a", a, "add new/5 first=false, update x 1→3")
	expect(t, "node b", b, "delete y/2")

	got, err := p.View("a").Lister().List(labels.Everything())
	if err != nil || len(got) != 2 || got[0].ManagedFields != nil {
		t.Errorf("node a lists %v (%v), want its two pods without managed fields", got, err)
	}
	if _, err := p.View("b").Lister().Pods("ns").Get("x"); err == nil {
		t.Error("node b gets a pod of node a")
	}
	for name, want := range map[string]string{"x": "a", "y": "", "z": ""} {
		if got := p.NodeOf("ns", name); got != want {
			t.Errorf("pod %s is on node %q, want %q", name, got, want)
		}
	}
	if p.View("foreign") != nil {
		t.Error("there is a view of a node that is none of ours")
	}
}

// TestListAfterAGap: the first list after a gap shows the changes during the gap.
func TestListAfterAGap(t *testing.T) {
	p, r, a, b := twoNodes(t)
	replace(r, pod("a", "same", "1", "1"), pod("a", "changed", "2", "1"), pod("a", "gone", "3", "1"), pod("a", "moved", "4", "1"), pod("a", "again", "5", "1"))
	a.take()
	replace(r, pod("a", "same", "1", "1"), pod("a", "changed", "2", "9"), pod("b", "moved", "6", "9"), pod("a", "again", "7", "9"))
	expect(t, "node a", a, "lost ns/gone/3, lost ns/moved/4, update again 1→9, update changed 1→9")
	expect(t, "node b", b, "add moved/6 first=false")
	if got := p.NodeOf("ns", "moved"); got != "b" {
		t.Errorf("the pod that was created again on another node is on %q, want b", got)
	}
}

func TestHandlersComeAndGo(t *testing.T) {
	p, r, a, _ := twoNodes(t)
	replace(r, pod("a", "x", "1", "1"))
	a.take()
	informer, late := p.View("a").Informer(), &journal{}
	registration, err := informer.AddEventHandler(late)
	if err != nil || !registration.HasSynced() {
		t.Fatalf("a late handler has not synced (%v)", err)
	}
	expect(t, "a late handler", late, "add x/1 first=true")
	if err := p.View("b").Informer().RemoveEventHandler(registration); err == nil {
		t.Error("node b removes a handler of node a")
	}
	if err := informer.RemoveEventHandler(registration); err != nil {
		t.Fatal(err)
	}
	_ = r.Update(pod("a", "x", "1", "2"))
	expect(t, "a handler that was removed", late, "")
	expect(t, "the other one", a, "update x 1→2")
	if err := informer.SetTransform(nil); err == nil {
		t.Error("one node changes what all of them share")
	}
}

// TestResync: a round of resync shows each pod once, and spreads the pods over the round.
func TestResync(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	p := NewPods(nil, names, time.Minute)
	all, r := &journal{}, (*podRouter)(p)
	for _, name := range names {
		replaceOne(r, p, name, all)
	}
	all.take()
	most, sum := 0, 0
	for range resyncSteps {
		_ = r.Resync()
		n := len(all.lines)
		most, sum = max(most, n), sum+n
		all.take()
	}
	if sum != len(names) || most > 4 {
		t.Errorf("a round shows %d pods, at most %d at once; want each of %d once, spread out", sum, most, len(names))
	}
}

func replaceOne(r *podRouter, p *Pods, node string, j *journal) {
	_, _ = p.View(node).Informer().AddEventHandler(j)
	_ = r.Add(pod(node, "p-"+node, node, "1"))
}

// TestRun: a real reflector feeds the nodes.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newPodAPI()
		api.create("a", "x")
		p := NewPods(api.source(), []string{"a", "b"}, time.Minute)
		ctx, stop := withCancel(t)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		if !cache.WaitForCacheSync(ctx.Done(), p.View("b").Informer().HasSynced) {
			t.Fatal("it did not sync")
		}
		j := &journal{}
		if _, err := p.View("a").Informer().AddEventHandler(j); err != nil {
			t.Fatal(err)
		}
		api.create("foreign", "f")
		api.create("a", "y")
		synctest.Wait()
		expect(t, "node a", j, "add x/uid-1 first=true, add y/uid-3 first=false")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := j.take(); strings.Count(got, "update") != 2 {
			t.Errorf("in a minute node a was shown %q, want each of its pods once", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}
