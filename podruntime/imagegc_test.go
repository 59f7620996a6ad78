// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/image"
)

// fill leaves free percent of the disk of images free, until the images have been checked twice.
func (w *world) fill(free uint64) {
	w.mu.Lock()
	w.space = image.Disk{Capacity: 100, Available: free}
	w.mu.Unlock()
	time.Sleep(11 * time.Minute)
	synctest.Wait()
}

// has reports whether the machine has an image.
func (w *world) has(name string) bool {
	w.t.Helper()
	list, err := w.Client().ListImages(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range list {
		if strings.HasSuffix(strings.Join(i.RepoTags, " "), "/"+name+":latest") {
			return true
		}
	}
	return false
}

func TestImagesThatNoPodUsesGoWhenTheDiskIsFull(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		for _, name := range []string{"unused", "ended", "mounted", "waits"} {
			w.AddImage(fakecri.Image{Name: name, Size: 1})
		}
		running := podOf("web", "main")
		running.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "mounted", PullPolicy: corev1.PullIfNotPresent}}}}
		running.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		w.create(running)
		w.awaitRunning(running)
		ended := podOf("job", "main")
		ended.Spec.RestartPolicy, ended.Spec.Containers[0].Image = corev1.RestartPolicyNever, "ended"
		w.Script(fakecri.ByPod("job", "main"), fakecri.Exit(0))
		w.create(ended)
		w.await(ended, "succeeded", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodSucceeded })
		w.Fail("CreateContainer", -1, errors.New("no room"))
		waits := podOf("late", "main")
		waits.Spec.Containers[0].Image = "waits"
		w.create(waits)

		w.fill(20)
		if !w.has("unused") {
			t.Fatal("an image went while there was space")
		}
		w.fill(5)
		for name, want := range map[string]bool{"unused": false, "app": true, "ended": true, "mounted": true, "waits": true} {
			if w.has(name) != want {
				t.Errorf("the machine has image %s: %v, want %v", name, !want, want)
			}
		}
		if len(w.eventsOf("FreeDiskSpaceFailed Failed to garbage collect required amount of images.")) == 0 || len(w.eventsOf("ImageGCFailed")) == 0 {
			t.Errorf("got events %q, want that not enough could be freed", w.eventsOf(""))
		}
		w.delete(ended, 0)
		w.awaitGone(ended)
		w.fill(5)
		if w.has("ended") {
			t.Error("the image of a pod that is gone is still there")
		}
	})
}

// TestAnImageThatCannotBeLookedAtStopsNoCollection: an unreadable image does not stop the collection. Its
// archive may be broken, or there may be no room to unpack it.
func TestAnImageThatCannotBeLookedAtStopsNoCollection(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.AddImage(fakecri.Image{Name: "unused", Size: 1})
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.Fail("ImageStatus", -1, errors.New("read the archive: unexpected EOF"))
		w.fill(5)
		if w.has("unused") || !w.has("app") {
			t.Errorf("the machine has the image that nothing uses: %v, and that of a pod: %v", w.has("unused"), w.has("app"))
		}
	})
}

func TestImageGCThatCannotBe(t *testing.T) {
	for _, g := range []ImageGC{
		{HighThresholdPercent: 101}, {HighThresholdPercent: 70}, {HighThresholdPercent: -1}, {LowThresholdPercent: 85}, {LowThresholdPercent: -1},
		{MinimumAge: metav1.Duration{Duration: -1}}, {MaximumAge: metav1.Duration{Duration: time.Minute}},
	} {
		if _, err := g.imagePolicy(); !errdefs.IsInvalidInput(err) {
			t.Errorf("%+v: got %v, want that it cannot be", g, err)
		}
	}
	got, err := ImageGC{}.imagePolicy()
	if want := (image.Policy{High: 85, Low: 80, MinAge: 2 * time.Minute}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := (ImageGC{HighThresholdPercent: 100}).imagePolicy(); err != nil || got.High != 100 {
		t.Errorf("none is removed: got %+v, %v", got, err)
	}
}
