// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// inForm returns long if the long form of the rows is requested, and short otherwise.
func inForm[T any](short, long T) T {
	if faultrow.Long() {
		return long
	}
	return short
}

func (w *world) podClient() corev1client.PodInterface {
	return w.api.Client.CoreV1().Pods(w.namespace)
}

// pod returns a pod that is bound to the test's node.
func (w *world) pod(name string) *corev1.Pod {
	noToken := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: corev1.PodSpec{
			NodeName:                     w.nodeName,
			AutomountServiceAccountToken: &noToken,
			Containers:                   []corev1.Container{{Name: "main", Image: "example.test/image:1"}},
		},
	}
}

func (w *world) create(pod *corev1.Pod) *corev1.Pod {
	w.Helper()
	got, err := w.tryCreate(pod)
	if err != nil {
		w.Fatalf("create pod %s: %v", pod.Name, err)
	}
	return got
}

func (w *world) tryCreate(pod *corev1.Pod) (got *corev1.Pod, err error) {
	err = again(func(tried bool) error {
		if got, err = w.podClient().Create(w.Context(), pod, metav1.CreateOptions{}); tried && apierrors.IsAlreadyExists(err) {
			got, err = w.podClient().Get(w.Context(), pod.Name, metav1.GetOptions{})
		}
		return err
	})
	return got, err
}

// again repeats a request of the test itself while etcd times out. On a busy machine, a request has waited for
// longer than etcd's limit of five seconds. The server may have carried out such a request.
func again(do func(tried bool) error) error {
	err := do(false)
	for tries := 1; tries < 5 && apierrors.IsInternalError(err) && strings.Contains(err.Error(), "etcdserver: request timed out"); tries++ {
		err = do(true)
	}
	return err
}

// createMany creates pods, several at a time, and returns their names.
func (w *world) createMany(prefix string, n int) []string {
	w.Helper()
	names := numbered(prefix, n)
	w.forEach(names, func(name string) error {
		_, err := w.tryCreate(w.pod(name))
		return err
	})
	return names
}

// startMany creates pods and waits until these and no others run.
func (w *world) startMany(prefix string, n int) []string {
	w.Helper()
	names := w.createMany(prefix, n)
	w.awaitRunning(n)
	return names
}

// removeMany deletes pods at once, as a forced deletion does, or gracefully.
func (w *world) removeMany(names []string, options metav1.DeleteOptions) {
	w.Helper()
	w.forEach(names, func(name string) error { return w.podClient().Delete(w.Context(), name, options) })
}

// atOnce returns the options of a forced deletion.
func atOnce() metav1.DeleteOptions { return *metav1.NewDeleteOptions(0) }

func (w *world) forEach(names []string, do func(string) error) {
	w.Helper()
	var group errgroup.Group
	group.SetLimit(10)
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	if err := group.Wait(); err != nil {
		w.Fatal(err)
	}
}

// numbered returns n names.
func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return names
}

// awaitRunning waits until n pods run and there are no others.
func (w *world) awaitRunning(n int) []*corev1.Pod {
	w.Helper()
	return w.pods.await(w.T, fmt.Sprintf("%d pods run", n), func(pods []*corev1.Pod) bool {
		return len(pods) == n && all(pods, running)
	})
}

// awaitPod waits until done returns true for the pod.
func (w *world) awaitPod(name, what string, done func(*corev1.Pod) bool) (found *corev1.Pod) {
	w.Helper()
	w.pods.await(w.T, fmt.Sprintf("pod %s %s", name, what), func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if pod.Name == name && done(pod) {
				found = pod
				return true
			}
		}
		return false
	})
	return found
}

// key returns the key of a pod in the test's namespace.
func (w *world) key(name string) string { return w.namespace + "/" + name }

// restarts makes the backend report n restarts of a container of each pod.
func (w *world) restarts(names []string, n int32) {
	for _, name := range names {
		w.backend.Change(w.key(name), func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount = n })
	}
}

// restarted returns a condition: the API server has a status with n restarts.
func restarted(n int32) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].RestartCount == n
	}
}

// createdOnce checks that the backend got exactly one request to create each pod.
func (w *world) createdOnce(names []string) {
	w.Helper()
	for _, name := range names {
		if n := w.backend.Count("create " + w.key(name)); n != 1 {
			w.Errorf("CreatePod was called %d times for pod %s, want once", n, name)
		}
	}
}

// untouched checks that since the given time the backend got no request but the creation of the pods in but.
func (w *world) untouched(since time.Time, but ...string) {
	w.Helper()
	for _, c := range w.calls.since(since, "create", "update", "delete") {
		if c.verb != "create" || !contains(but, c.name) {
			w.Errorf("the backend was asked to %s pod %s (UID %s), which nobody wanted", c.verb, c.name, c.uid)
		}
	}
}

// within checks a time budget of the matrix.
func (w *world) within(what string, took, budget time.Duration) {
	w.Helper()
	if most := faultrow.Budget(budget); took > most {
		w.Errorf("%s took %v, want at most %v", what, took, most)
	}
}

// podWrite is a condition: the request changes a pod and succeeded.
func podWrite(r faultproxy.Request) bool {
	return r.Resource == "pods" && r.Writes() && r.Status >= 200 && r.Status < 300
}

// running reports whether a pod runs, is ready and is not being deleted.
func running(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && conditionTrue(pod, corev1.PodReady)
}

func conditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func all[T any](list []T, is func(T) bool) bool {
	for _, e := range list {
		if !is(e) {
			return false
		}
	}
	return true
}
