// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// TestSandboxIsToldItsVolumes: the annotation of the sandbox names the volumes that the node has made, and no
// path that the pod itself names in this annotation.
func TestSandboxIsToldItsVolumes(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.kill()
		w.configure = func(c *Config) { c.SandboxVolumes = true }
		w.start()
		told := func(name string, volumes ...corev1.Volume) string {
			pod := podOf(name, "main")
			pod.Annotations = map[string]string{SandboxVolumesAnnotation: `["/etc"]`, "other": "stays"}
			pod.Spec.Volumes = volumes
			for _, v := range volumes {
				pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
			}
			w.create(pod)
			w.awaitRunning(pod)
			defer func() { // the mounts are removed with the pod
				w.delete(pod, 1)
				w.awaitGone(pod)
			}()
			c, _ := w.Find(name, "main")
			for _, s := range w.Sandboxes() {
				if s.ID == c.SandboxID {
					if s.Config.GetAnnotations()["other"] != "stays" {
						t.Errorf("annotations: got %v", s.Config.GetAnnotations())
					}
					return s.Config.GetAnnotations()[SandboxVolumesAnnotation]
				}
			}
			t.Fatal("the pod has no sandbox")
			return ""
		}
		if got := told("none"); got != "" {
			t.Errorf("a pod without volumes: got %s", got)
		}
		if os.Geteuid() != 0 {
			t.Skip("this needs the right to mount")
		}
		got := told("some", corev1.Volume{Name: "m", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
		var dirs []string
		if err := json.Unmarshal([]byte(got), &dirs); err != nil || len(dirs) != 1 || !strings.HasSuffix(dirs[0], "/volumes/m") {
			t.Errorf("got %s, %v", got, err)
		}
	})
}
