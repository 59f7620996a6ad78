// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	theirs = "example.test/note"     // written by a user
	ours   = "backend.test/instance" // written by the provider
)

// TestProviderLabelsItsPod makes the provider add, change and drop an annotation and a label.
func TestProviderLabelsItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.startPod(w.pod("web"))
	w.annotate("web")
	w.awaitBackend("the backend knows of the annotation", func() bool { return w.backend.Count("update "+w.key("web")) > 0 })
	for _, want := range []string{"i-1", "i-2", ""} {
		w.mark("web", want)
		pod := w.awaitPod("web", "carries the provider's marks "+want, func(pod *corev1.Pod) bool {
			return pod.Annotations[ours] == want && pod.Labels[ours] == want
		})
		if pod.Annotations[theirs] != "changed" {
			t.Errorf("the user's annotation is lost: %v", pod.Annotations)
		}
	}
}

// TestProviderLabelsUnderNodeAuthorizer: the Node authorizer forbids the node to change labels of pods. The
// pod's status and annotations are written all the same.
func TestProviderLabelsUnderNodeAuthorizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	w.start()
	w.startPod(w.pod("web"))
	w.backend.Change(w.key("web"), func(pod *corev1.Pod) { pod.Status.PodIP = "10.0.0.9" })
	w.mark("web", "i-1")
	w.awaitPod("web", "carries its address and the annotation", func(pod *corev1.Pod) bool {
		return pod.Status.PodIP == "10.0.0.9" && pod.Annotations[ours] == "i-1"
	})
}

// mark makes the provider report an annotation and a label on its pod. "" drops both.
func (w *world) mark(name, value string) {
	w.backend.Change(w.key(name), func(pod *corev1.Pod) {
		for _, marks := range []*map[string]string{&pod.Annotations, &pod.Labels} {
			if *marks == nil {
				*marks = map[string]string{}
			}
			(*marks)[ours] = value
			if value == "" {
				delete(*marks, ours)
			}
		}
	})
}

// TestSpecChange replaces the image of a container.
func TestSpecChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	before := w.startPod(w.pod("web"))
	body := []byte(`{"spec":{"containers":[{"name":"main","image":"example.test/image:2"}]}}`)
	changed, err := w.pods().Patch(t.Context(), "web", types.StrategicMergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if changed.Generation <= before.Generation {
		t.Fatalf("the generation went from %d to %d", before.Generation, changed.Generation)
	}
	pod := w.awaitPod("web", "has been seen as it is now", func(pod *corev1.Pod) bool {
		return pod.Status.ObservedGeneration == changed.Generation
	})
	if !running(pod) {
		t.Errorf("the pod is %+v, want running", pod.Status)
	}
	if got := w.backend.Has(w.key("web")).Spec.Containers[0].Image; got != "example.test/image:2" {
		t.Errorf("the backend has image %q", got)
	}
}

// TestFinalizerHoldsThePod: a pod with a foreign finalizer ends at the backend, and its object stays until the
// finalizer is removed.
func TestFinalizerHoldsThePod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	pod := w.pod("held")
	pod.Finalizers = []string{"example.test/hold"}
	pod = w.startPod(pod)
	w.remove("held", metav1.DeleteOptions{})
	w.awaitEmptyBackend()
	w.awaitPod("held", "has ended", terminal)
	body := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := w.pods().Patch(t.Context(), "held", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitGone("held", pod.UID)
	if writes := w.requests.podWrites()[w.key("held")]; len(writes) > maxWrites+1 {
		t.Errorf("the pod cost %d writes:\n%s", len(writes), lines(writes))
	}
}
