// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// TestPodThatWaitsIsNotTold checks that a remote pod is reported only once its status differs from the home
// status.
func TestPodThatWaitsIsNotTold(t *testing.T) {
	home := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		change(pod)
		return pod
	}
	remote := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "mapped", Name: "web-r", UID: "r", Labels: map[string]string{LabelUID: "u"},
			Annotations: map[string]string{AnnotationNamespace: "default", AnnotationName: "web"}}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
		change(pod)
		return pod
	}
	same := func(*corev1.Pod) {}
	condition := func(c corev1.PodConditionType, is corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: c, Status: is, Reason: "Because", Message: "no node"}}
		}
	}
	scheduled, nowhere := condition(corev1.PodScheduled, corev1.ConditionTrue), condition(corev1.PodScheduled, corev1.ConditionFalse)
	for _, c := range []struct {
		name string
		home func(*corev1.Pod)
		seen []func(*corev1.Pod)
		want int // the number of reports to the node
	}{
		{"a new pod", same, []func(*corev1.Pod){same}, 0},
		{"a pod that is scheduled", same, []func(*corev1.Pod){same, scheduled}, 0},
		{"a pod that nowhere fits", same, []func(*corev1.Pod){nowhere}, 1},
		{"a pod that fits again", same, []func(*corev1.Pod){same, nowhere, scheduled}, 2},
		{"a pod that runs", same, []func(*corev1.Pod){scheduled, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }}, 1},
		{"a pod that a node has", same, []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{} }}, 1},
		{"a pod with a condition of its node", same, []func(*corev1.Pod){condition(corev1.PodInitialized, corev1.ConditionFalse)}, 1},
		{"a container that waits", same, []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{}} }}, 1},
		{"an init container that waits", same, []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.InitContainerStatuses = []corev1.ContainerStatus{{}} }}, 1},
		{"a pod that somebody removes", same, []func(*corev1.Pod){same, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }}, 1},
		{"home has a message of before", func(p *corev1.Pod) { p.Status.Message = "no node" }, []func(*corev1.Pod){scheduled}, 1},
		{"home knows that it ran", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, []func(*corev1.Pod){same}, 1},
		{"its time is measured", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }, []func(*corev1.Pod){same}, 1},
		{"home has another pod of the name", func(p *corev1.Pod) { p.UID = "another" }, []func(*corev1.Pod){same}, 1},
	} {
		cl, _ := listening(t, home(c.home))
		told := 0
		cl.NotifyPods(t.Context(), func(pod *corev1.Pod) { told++ })
		for _, change := range c.seen {
			cl.recordSeen(remote(change))
		}
		if told != c.want {
			t.Errorf("%s: the node was told %d times, want %d", c.name, told, c.want)
		}
		if cl.recordGone(remote(same)); len(cl.told) > 0 {
			t.Errorf("%s: what is gone is remembered", c.name)
		}
	}
}

// TestOthersAreAllButTheNodesOwn checks that each object is in exactly one watch: the watch of the node, or one
// of the watches of the others.
func TestOthersAreAllButTheNodesOwn(t *testing.T) {
	long := "a-name-that-is-longer-than-what-a-label-can-have-of-it-and-so-is-shortened-there"
	for _, h := range []Home{testHome, {Cluster: long, Node: long}} {
		for name, of := range map[types.UID]map[string]string{
			"own": h.Labels(), "another node": Home{h.Cluster, "another"}.Labels(), "another cluster": Home{"another", h.Node}.Labels(), "nobody": nil,
			"no node": {LabelCluster: labelValue(h.Cluster)},
		} {
			found := 0
			for _, text := range append(h.othersSelectors(), h.Selector()) {
				selector, err := labels.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(labels.Set(of)) {
					found++
				}
			}
			own, err := labels.Parse(h.Selector())
			if err != nil {
				t.Fatal(err)
			}
			if found != 1 || own.Matches(labels.Set(of)) != h.ownsObject(&metav1.ObjectMeta{Labels: of}) {
				t.Errorf("%s: found by %d of the selectors, want one", name, found)
			}
		}
	}
}
