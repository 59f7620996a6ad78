// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// canary is what the Secret of that name has in it, which every pod can have.
const canary = "canary-in-a-secret"

func podWithSecret(name string) *corev1.Pod {
	pod := podOf(name, "c")
	pod.Spec.Volumes = []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: canary}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "s", MountPath: "/s"}}
	return pod
}

// secretsLeft returns the files that have the canary in them, wherever volumes can be.
func (w *world) secretsLeft() (found []string) {
	w.t.Helper()
	dirs, err := filepath.Glob("/dev/shm/virtual-kubelet-*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range append(dirs, w.root) {
		// What goes away meanwhile, or is another user's, is not ours.
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

// TestSecurityD3SecretsGoWithThePod: 5 s after its end nothing of a Secret is on the machine, also if the process is killed
// while the pod ends.
func TestSecurityD3SecretsGoWithThePod(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "") // volumes are then where secretsLeft looks
	for name, story := range map[string]func(w *world, pod *corev1.Pod){
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
				story(w, pod)
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
