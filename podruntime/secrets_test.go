// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// canary is the name of a Secret that every pod can use, and a part of its content.
const canary = "canary-in-a-secret"

func podWithSecret(name string) *corev1.Pod {
	pod := podOf(name, "c")
	pod.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: canary}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "s", MountPath: "/s"}}
	return pod
}

// secretsLeft returns the files that contain the canary, in every place where volumes can be.
func (w *world) secretsLeft() (found []string) {
	w.t.Helper()
	dirs, err := filepath.Glob("/dev/shm/virtual-kubelet-*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range append(dirs, w.root) {
		// Files that disappear during the walk, and files of other users, do not belong to this test.
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(canary+w.root)) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// TestSecurityD3SecretsGoWithThePod: 5 s after the end of a pod, nothing of its Secret is on the machine, even
// if the process is killed while the pod ends.
func TestSecurityD3SecretsGoWithThePod(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "") // volumes are then in directories that secretsLeft searches
	for name, test := range map[string]func(w *world, pod *corev1.Pod){
		"deleted": func(w *world, pod *corev1.Pod) {
			w.delete(pod, 1)
			w.await(pod, "ended", hasEnded)
		},
		"ended by itself": func(w *world, pod *corev1.Pod) { w.await(pod, "ended", hasEnded) },
		"killed while it ends": func(w *world, pod *corev1.Pod) {
			w.delete(pod, 1)
			w.restart(pod)
			w.delete(pod, 1)
			w.await(pod, "ended", hasEnded)
		},
		"killed, and the pod was forgotten": func(w *world, pod *corev1.Pod) {
			w.restart()
			w.delete(pod, 0)
			w.awaitGone(pod)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecri.Config{NoEvents: true}, func(_ *testing.T, w *world) {
				if name == "ended by itself" {
					w.Script(fakecri.ByName("c"), fakecri.ExitAfter(time.Minute, 0))
				}
				pod := podWithSecret("web")
				pod.Spec.RestartPolicy = corev1.RestartPolicyNever
				w.create(pod)
				w.awaitRunning(pod)
				if len(w.secretsLeft()) == 0 {
					w.t.Error("the secret is not in the volume of the pod that runs")
				}
				test(w, pod)
				time.Sleep(5 * time.Second)
				if left := w.secretsLeft(); len(left) > 0 {
					w.t.Errorf("5 s after the end of the pod these have a secret: %v", left)
				}
			})
		})
	}
}

func hasEnded(s *corev1.PodStatus) bool {
	return len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Terminated != nil
}

// TestVolumesAreLookedAtAgainWhenItIsTime: volumes are refreshed after their interval, and not right after their
// setup.
func TestVolumesAreLookedAtAgainWhenItIsTime(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podWithSecret("web")
		w.create(pod)
		w.awaitRunning(pod)
		for _, want := range []int{1, 2} {
			time.Sleep(10 * time.Second)
			w.mu.Lock()
			if w.secrets != want {
				t.Errorf("the Secret of the volume was read %d times, want %d", w.secrets, want)
			}
			w.mu.Unlock()
		}
		changed := pod.DeepCopy()
		changed.Labels = map[string]string{"new": "label"}
		if err := w.runtime.UpdatePod(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.mu.Lock()
		if w.secrets != 3 {
			t.Errorf("after a change of labels, which volumes may show, they were looked at %d times, want 3", w.secrets)
		}
		w.mu.Unlock()
		w.delete(pod, 0)
		w.awaitGone(pod)
	})
}

// TestSecurityD3SecretsOfAPodThatNobodyKnowsGo: the machine lost the pod's containers while no process ran, and
// the API server no longer has the pod. The files of its Secret are removed.
func TestSecurityD3SecretsOfAPodThatNobodyKnowsGo(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod, other := podWithSecret("web"), podWithSecret("other")
		w.create(pod)
		w.awaitRunning(pod)
		w.kill()
		client := w.Client()
		for _, s := range w.Sandboxes() {
			if err := errors.Join(client.StopPodSandbox(t.Context(), s.ID), client.RemovePodSandbox(t.Context(), s.ID)); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		w.create(other)
		w.awaitRunning(other)
		time.Sleep(leftoversEvery - time.Minute)
		if n := len(w.secretsLeft()); n != 2 {
			t.Errorf("%d files have a secret before it is certain that nobody wants the pod, want those of 2 pods", n)
		}
		time.Sleep(leftoversEvery + 2*time.Minute)
		if left := w.secretsLeft(); len(left) != 1 || !strings.Contains(left[0], string(other.UID)) {
			t.Errorf("10 minutes later these have a secret: %v, want that of the pod that runs", left)
		}
		w.delete(other, 0)
		w.awaitGone(other)
	})
}
