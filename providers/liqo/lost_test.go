// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// removeRemote removes the remote pod but not its ShadowPod, as a drain of its node does.
func (u *home) removeRemote(pod *corev1.Pod) {
	u.Helper()
	remote := u.remote(pod)
	if err := u.worker.API.Client.CoreV1().Pods(remote.Namespace).Delete(u.Context(), remote.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))}); err != nil {
		u.Fatal(err)
	}
	u.Until("the remote pod is another one or gone", func() (bool, string) {
		now, err := u.worker.API.Client.CoreV1().Pods(remote.Namespace).Get(u.Context(), remote.Name, metav1.GetOptions{})
		return err != nil || now.UID != remote.UID, fmt.Sprint(err)
	})
}

// untilRestarts waits until the pod runs and has the given number of restarts.
func (u *home) untilRestarts(p *provider, pod *corev1.Pod, want int32) *corev1.Pod {
	u.Helper()
	var got *corev1.Pod
	u.Until(fmt.Sprintf("pod %s runs with %d restarts", pod.Name, want), func() (bool, string) {
		got = u.UntilRuns(p, pod)
		n := got.Status.ContainerStatuses[0].RestartCount
		return n == want, fmt.Sprint(n, " restarts")
	})
	return got
}

// TestLostPodIsMadeAgain has a pod that Liqo recreates. It stays the same home pod, and its restarts add up, also
// over restarts of the node.
func TestLostPodIsMadeAgain(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "lost", "vk-0")
	p, stop := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.removeRemote(pod)
	u.untilRestarts(p, pod, 1)
	u.removeRemote(pod)
	seen := u.untilRestarts(p, pod, 2)
	for _, r := range u.ReportsOf(pod.UID) {
		if terminal := r.Status.Phase == corev1.PodSucceeded || r.Status.Phase == corev1.PodFailed; terminal {
			t.Errorf("a pod that Liqo makes again was reported as %s: %s", r.Status.Phase, r.Status.Message)
		}
	}

	stop()
	home := pod.DeepCopy()
	home.Status = seen.Status // the API server at home has this status
	if err := u.Pods.Update(home); err != nil {
		t.Fatal(err)
	}
	p, stop = u.start()
	u.untilRestarts(p, pod, 2)
	stop()
	u.removeRemote(pod) // no provider watches
	p, _ = u.start()
	u.untilRestarts(p, pod, 3)
	if writes := u.line.Writes(); len(writes) != 1 {
		t.Errorf("all of it wrote to the remote cluster: %q, want the one create", writes)
	}
}

// TestRemovedJobIsNotDone has a program that exits with 0 on SIGTERM, which is no success. Liqo recreates the
// pod, unless it has seen the pod's end. Then the pod is lost, and the node decides.
func TestRemovedJobIsNotDone(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "job", "vk-0")
	p, _ := u.start()
	pod := u.Pod("default", "job", program.Program{Stay: program.Forever})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.removeRemote(pod)
	u.Until("the pod runs again or is lost", func() (bool, string) {
		got, err := p.GetPod(t.Context(), "default", "job")
		if err != nil {
			return errdefs.IsNotFound(err), err.Error()
		}
		s := got.Status.ContainerStatuses
		return len(s) == 1 && s[0].RestartCount == 1, fmt.Sprint(s)
	})
	for _, r := range u.ReportsOf(pod.UID) {
		if r.Status.Phase == corev1.PodSucceeded {
			t.Errorf("a pod that somebody removed over there was reported as %s", r.Status.Phase)
		}
	}
}

// TestEndedPodIsKept has an ended pod that a cleanup in the remote cluster removes.
func TestEndedPodIsKept(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "ended", "vk-0")
	p, _ := u.start()
	pod := u.Pod("default", "job", program.Program{Print: []string{"done"}})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	u.Create(p, pod)
	succeeded := func() (bool, string) {
		got, err := p.GetPod(t.Context(), "default", "job")
		if err != nil {
			return false, err.Error()
		}
		return got.Status.Phase == corev1.PodSucceeded, string(got.Status.Phase) + " " + got.Status.Message
	}
	u.Until("the pod has ended", succeeded)
	u.Until("Liqo knows it", func() (bool, string) {
		shadow, err := w.shadows.of(u.config.Namespaces["default"]).Get(t.Context(), u.identity().PodName(pod), metav1.GetOptions{})
		return err == nil && strings.Contains(fmt.Sprint(shadow.Object["status"]), "Succeeded"), errText(err)
	})
	u.removeRemote(pod)
	u.refreshed(p) // unneeded objects were collected in between
	if ok, state := succeeded(); !ok {
		t.Errorf("the pod that ended is %s, want Succeeded", state)
	}
	u.Delete(p, pod)
	u.UntilGone(p, pod)
}

// TestRemovedShadowPodIsALostPod removes the ShadowPod in the remote cluster. Liqo does not make it again, so
// the pod is lost.
func TestRemovedShadowPodIsALostPod(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "removed", "vk-0")
	p, _ := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	seen := u.UntilRuns(p, pod)
	if err := w.shadows.of(u.config.Namespaces["default"]).Delete(t.Context(), u.identity().PodName(pod), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	u.UntilGone(p, pod)
	for _, r := range u.ReportsOf(pod.UID) {
		if r.Status.Phase != corev1.PodRunning && r.Status.Phase != corev1.PodPending {
			t.Errorf("a pod that somebody removed over there was reported as %s", r.Status.Phase)
		}
	}
	home := pod.DeepCopy()
	home.Status = seen.Status
	u.Create(p, home)
	if got := u.UntilRuns(p, pod).Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the pod that was made again has %d restarts, want 1", got)
	}
}

// TestDeletedWhenBothAreGone delays the removal of the remote pod, and then of the ShadowPod, of a deleted pod.
func TestDeletedWhenBothAreGone(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newHome(t, w, "both", "vk-0")
	p, _ := u.start()
	namespace := u.config.Namespaces["default"]
	hold := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	release := []byte(`{"metadata":{"finalizers":null}}`)
	for what, patch := range map[string]func(name string, patch []byte) error{
		"pod": func(name string, patch []byte) error {
			_, err := w.API.Client.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
		"ShadowPod": func(name string, patch []byte) error {
			_, err := w.shadows.of(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	} {
		pod := u.Pod("default", strings.ToLower("held-"+what), stays())
		u.Create(p, pod)
		u.UntilRuns(p, pod)
		name := u.identity().PodName(pod)
		if err := patch(name, hold); err != nil {
			t.Fatal(err)
		}
		u.Delete(p, pod)
		shadow, pods := w.shadows.of(namespace), w.API.Client.CoreV1().Pods(namespace)
		u.Until("only the "+what+" is left", func() (bool, string) {
			s, errShadow := shadow.Get(t.Context(), name, metav1.GetOptions{})
			one, errPod := pods.Get(t.Context(), name, metav1.GetOptions{})
			if what == "pod" {
				return errShadow != nil && errPod == nil && one.DeletionTimestamp != nil, fmt.Sprint(errShadow, errPod)
			}
			return errShadow == nil && s.GetDeletionTimestamp() != nil, fmt.Sprint(errShadow, errPod)
		})
		u.refreshed(p)
		if _, err := p.GetPod(t.Context(), "default", pod.Name); err != nil {
			t.Errorf("while the %s is there: got %v, want the pod", what, err)
		}
		if err := patch(name, release); err != nil {
			t.Fatal(err)
		}
		u.UntilGone(p, pod)
		u.Delete(p, pod)
		u.Until("nothing is left", func() (bool, string) {
			_, errShadow := shadow.Get(t.Context(), name, metav1.GetOptions{})
			_, errPod := pods.Get(t.Context(), name, metav1.GetOptions{})
			return errShadow != nil && errPod != nil, fmt.Sprint(errShadow, errPod)
		})
		if err := p.DeletePod(t.Context(), pod); !errdefs.IsNotFound(err) {
			t.Errorf("DeletePod of a pod that is gone: got %v, want the kind not-found", err)
		}
	}
}
