// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRecreatedSameName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneInstanceAtATime()
	w.start()
	old := w.startPod(w.pod("web"))
	w.remove("web", atOnce())
	w.create(w.pod("web"))
	w.replaced("web", old)
}

func TestStatefulSetReplacesAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneInstanceAtATime()
	w.start()
	labels := map[string]string{"app": "web"}
	replicas := int32(1)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.spec()},
		},
	}
	if _, err := w.client().AppsV1().StatefulSets(w.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old := w.awaitPod("web-0", "runs", running)
	w.remove("web-0", metav1.DeleteOptions{})
	w.replaced("web-0", old)
}

// oneInstanceAtATime makes stops slow, and checks that no pod of the same name is created meanwhile.
func (w *world) oneInstanceAtATime() {
	w.backend.StopTime = 500 * time.Millisecond
	w.backend.Script(func(_ context.Context, method, key string) error {
		if there := w.backend.Has(key); method == "create" && there != nil {
			w.Errorf("CreatePod was called for pod %s while the backend still had it (UID %s)", key, there.UID)
		}
		return nil
	})
}

// replaced checks that a new pod of the same name has taken the place of the old one.
func (w *world) replaced(name string, old *corev1.Pod) {
	w.Helper()
	pod := w.awaitPod(name, "runs anew", func(pod *corev1.Pod) bool { return pod.UID != old.UID && running(pod) })
	if there := w.backend.Has(w.key(name)); there == nil || there.UID != pod.UID {
		w.Errorf("the backend has %v, want the new pod %s", there, pod.UID)
	}
	calls := slices.DeleteFunc(w.backend.Calls(), func(call string) bool { return !strings.HasSuffix(call, " "+w.key(name)) })
	calls = slices.Compact(calls) // a stop may be requested more than once
	want := []string{"create " + w.key(name), "delete " + w.key(name), "create " + w.key(name)}
	if !slices.Equal(calls, want) {
		w.Errorf("calls for pod %s: got %q, want %q", name, calls, want)
	}
}
