// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// heard records the events in the home cluster.
type heard struct {
	record.EventRecorder
	all []string
}

// Event implements record.EventRecorder.
func (h *heard) Event(o runtime.Object, kind, reason, message string) {
	ref := o.(*corev1.ObjectReference)
	h.all = append(h.all, fmt.Sprintf("%s/%s %s%s: %s %s %s", ref.Namespace, ref.Name, ref.UID, ref.FieldPath, kind, reason, message))
}

// since returns the events since the last call.
func (h *heard) since() []string {
	defer func() { h.all = nil }()
	return h.all
}

// listening returns a Cluster that was never connected, with a pod at home.
func listening(t *testing.T, home *corev1.Pod) (*Cluster, *heard) {
	t.Helper()
	h, pods := &heard{}, cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := pods.Add(home); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Home: testHome, REST: &rest.Config{Host: "127.0.0.1:1"}, Pods: corev1listers.NewPodLister(pods), Recorder: h,
		Namespaces: map[string]string{"default": "mapped"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, h
}

func saidOf(pod *corev1.Pod, uid string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Count: count, Type: "Warning", Reason: "BackOff", Message: "again",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{main}"}}
}

func TestEventsAreToldOnce(t *testing.T) {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	c, h := listening(t, home)
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mapped", Name: testHome.PodName(home), UID: "r",
		Labels: map[string]string{LabelUID: "u"}, Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web"}}}
	other := remote.DeepCopy()
	other.UID = "before"
	foreign := remote.DeepCopy()
	foreign.Namespace = "another"
	if err := c.cache.pods.GetStore().Add(remote); err != nil {
		t.Fatal(err)
	}
	const said = "default/web uspec.containers{main}: Warning BackOff in the remote cluster: again"
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"what was said before the node watched", func() error { return c.events.Replace([]any{saidOf(remote, "old", 4)}, "") }, nil},
		{"a new one", func() error { return c.events.Add(saidOf(remote, "new", 1)) }, []string{said}},
		{"the same once more", func() error { return c.events.Update(saidOf(remote, "new", 1)) }, nil},
		{"said again, many times", func() error { return c.events.Update(saidOf(remote, "new", 9)) }, []string{said}},
		{"the old one, said again", func() error { return c.events.Update(saidOf(remote, "old", 5)) }, []string{said}},
		{"of the pod before it", func() error { return c.events.Add(saidOf(other, "other", 1)) }, nil},
		{"of a pod of others", func() error { return c.events.Add(saidOf(foreign, "foreign", 1)) }, nil},
		{"what a watch that broke has missed", func() error {
			return c.events.Replace([]any{saidOf(remote, "new", 9), saidOf(remote, "missed", 1)}, "")
		}, []string{said}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, h.since()); diff != "" {
			t.Errorf("%s (-want +got): %s", step.what, diff)
		}
	}
	if n := len(c.events.told); n != 2 {
		t.Errorf("%d events are remembered, want the two that there are", n)
	}
}

func TestEventsMayBeAheadOfPods(t *testing.T) {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	c, h := listening(t, home)
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mapped", Name: testHome.PodName(home), UID: "r",
		Labels: map[string]string{LabelUID: "u"}, Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web"}}}
	if err := c.events.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.events.Add(saidOf(remote, "new", 1)); err != nil {
		t.Fatal(err)
	}
	if got := h.since(); got != nil {
		t.Errorf("of a pod that nobody knows was told %q", got)
	}
	if err := c.cache.pods.GetStore().Add(remote); err != nil {
		t.Fatal(err)
	}
	c.recordSeen(remote)
	c.recordSeen(remote)
	if got := h.since(); len(got) != 1 {
		t.Errorf("told %q, want one event", got)
	}
	for i := range 3 * earlyPods {
		other := remote.DeepCopy()
		other.Name = fmt.Sprint("other-", i)
		if err := c.events.Add(saidOf(other, other.Name, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.events.early); n > earlyPods {
		t.Errorf("events of %d pods of others are kept, want at most %d", n, earlyPods)
	}
}

// TestNormalEventsAreBounded sends more events of both types than a burst allows.
func TestNormalEventsAreBounded(t *testing.T) {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	c, h := listening(t, home)
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mapped", Name: testHome.PodName(home), UID: "r",
		Labels: map[string]string{LabelUID: "u"}, Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web"}}}
	if err := c.cache.pods.GetStore().Add(remote); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{corev1.EventTypeNormal, corev1.EventTypeWarning} {
		const more = normalBurst + 50
		for i := range more {
			event := saidOf(remote, fmt.Sprint(kind, i), 1)
			event.Type = kind
			if err := c.events.Add(event); err != nil {
				t.Fatal(err)
			}
		}
		told := len(h.since())
		if bounded := told >= normalBurst && told < more; bounded != (kind == corev1.EventTypeNormal) || !bounded && told != more {
			t.Errorf("of %d events of the type %s %d were told", more, kind, told)
		}
	}
}

// TestFirstListOfEvents checks a first list of events that comes after the node has made a pod. Events about
// that pod are reported, and events about an earlier pod are not.
func TestFirstListOfEvents(t *testing.T) {
	home := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}}
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mapped", Name: testHome.PodName(home), UID: "r",
		Labels: map[string]string{LabelUID: "u"}, Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web"}}}
	for _, tt := range []struct {
		what       string
		born, late bool
		want       int
	}{
		{"of a pod of before", false, false, 0},
		{"of a pod that this process made", true, false, 1},
		{"of one that the watch of pods shows late", true, true, 1},
	} {
		c, h := listening(t, home)
		c.setBorn(home.UID, tt.born)
		show := func() {
			if err := c.cache.pods.GetStore().Add(remote); err != nil {
				t.Fatal(err)
			}
			c.events.repeatEarly(remote)
		}
		if !tt.late {
			show()
		}
		if err := c.events.Replace([]any{saidOf(remote, "first", 1)}, ""); err != nil {
			t.Fatal(err)
		}
		if show(); len(h.all) != tt.want {
			t.Errorf("what the first list says %s: told %q, want %d", tt.what, h.all, tt.want)
		}
	}
}
