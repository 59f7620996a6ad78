// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// client returns the administrator's client.
func (w *world) client() kubernetes.Interface { return w.api.Client }

func (w *world) pods() corev1client.PodInterface { return w.client().CoreV1().Pods(w.namespace) }

// spec returns the spec of a pod that a scheduler can only place on the test's node.
func (w *world) spec() corev1.PodSpec {
	noToken := false
	return corev1.PodSpec{
		AutomountServiceAccountToken: &noToken,
		NodeSelector:                 map[string]string{corev1.LabelHostname: w.nodeName},
		Containers:                   []corev1.Container{{Name: "main", Image: "example.test/image:1"}},
	}
}

// pod returns a pod that the client itself binds to the test's node.
func (w *world) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: w.spec()}
	pod.Spec.NodeName = w.nodeName
	return pod
}

func (w *world) create(pod *corev1.Pod) *corev1.Pod {
	w.Helper()
	got, err := w.pods().Create(w.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.Fatalf("create pod %s: %v", pod.Name, err)
	}
	return got
}

// startPod creates a pod and waits until it runs.
func (w *world) startPod(pod *corev1.Pod) *corev1.Pod {
	w.Helper()
	w.create(pod)
	return w.awaitPod(pod.Name, "runs", running)
}

func (w *world) remove(name string, options metav1.DeleteOptions) {
	w.Helper()
	if err := w.pods().Delete(w.Context(), name, options); err != nil {
		w.Fatalf("delete pod %s: %v", name, err)
	}
}

// atOnce returns the options of a forced deletion.
func atOnce() metav1.DeleteOptions { return *metav1.NewDeleteOptions(0) }

// createMany creates pods, several at a time, and returns their names.
func (w *world) createMany(prefix string, n int) (names []string) {
	w.Helper()
	names = numbered(prefix, n)
	w.forEach(names, w.tryCreate)
	return names
}

func (w *world) tryCreate(name string) error {
	_, err := w.pods().Create(w.Context(), w.pod(name), metav1.CreateOptions{})
	return err
}

func (w *world) tryRemove(name string) error {
	return w.pods().Delete(w.Context(), name, metav1.DeleteOptions{})
}

// numbered returns n names.
func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return names
}

// removeMany deletes pods, several at a time.
func (w *world) removeMany(names []string) {
	w.Helper()
	w.forEach(names, w.tryRemove)
}

func (w *world) forEach(names []string, do func(string) error) {
	w.Helper()
	if err := forEach(names, do); err != nil {
		w.Fatal(err)
	}
}

// forEach calls do for each name, ten at a time.
func forEach(names []string, do func(string) error) error {
	var group errgroup.Group
	group.SetLimit(10)
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	return group.Wait()
}

func (w *world) podQuery(name string) query {
	return query{client: w.client().CoreV1().RESTClient(), resource: "pods", namespace: w.namespace, name: name}
}

// awaitPods waits until done returns true for all pods of the test's namespace.
func (w *world) awaitPods(what string, done func([]*corev1.Pod) bool) []*corev1.Pod {
	w.Helper()
	return await(w.T, w.podQuery(""), &corev1.Pod{}, what, done)
}

// awaitPod waits until done returns true for one pod.
func (w *world) awaitPod(name, what string, done func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	return await(w.T, w.podQuery(name), &corev1.Pod{}, fmt.Sprintf("pod %s %s", name, what), func(pods []*corev1.Pod) bool {
		return len(pods) == 1 && done(pods[0])
	})[0]
}

// awaitGone waits until the pod with the UID is no longer in the API server.
func (w *world) awaitGone(name string, uid types.UID) {
	w.Helper()
	await(w.T, w.podQuery(name), &corev1.Pod{}, fmt.Sprintf("pod %s is gone", name), func(pods []*corev1.Pod) bool {
		return len(pods) == 0 || pods[0].UID != uid
	})
}

// awaitRunning waits until n pods run and there are no others.
func (w *world) awaitRunning(n int) []*corev1.Pod {
	w.Helper()
	return w.awaitPods(fmt.Sprintf("%d pods run", n), func(pods []*corev1.Pod) bool {
		return len(pods) == n && all(pods, running)
	})
}

func (w *world) awaitNoPods() {
	w.Helper()
	w.awaitPods("there are no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
}

// running reports whether a pod runs, is ready and is not being deleted.
func running(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && conditionTrue(pod, corev1.PodReady)
}

func terminal(pod *corev1.Pod) bool { return lifecycle.Terminal(&pod.Status) }

func conditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func all[T any](list []T, is func(T) bool) bool {
	for _, e := range list {
		if !is(e) {
			return false
		}
	}
	return true
}
