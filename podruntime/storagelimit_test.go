// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// limit gives a container of a pod a limit of ephemeral storage.
func limit(pod *corev1.Pod, container, amount string) *corev1.Pod {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == container {
				list[i].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(amount)}
			}
		}
	}
	return pod
}

func TestExceededStorage(t *testing.T) {
	withInit := func(always bool) *corev1.Pod {
		pod := podOf("web", "a")
		pod.Spec.InitContainers = []corev1.Container{{Name: "i"}}
		if always {
			pod.Spec.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		return limit(limit(pod, "i", "30"), "a", "10")
	}
	withVolumes := limit(podOf("web", "a"), "a", "100")
	withVolumes.Spec.Volumes = []corev1.Volume{{Name: "disk"}, {Name: "memory"}, {Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
	const all, one = "Pod ephemeral local storage usage exceeds the total limit of containers ", "Container a exceeded its local ephemeral storage limit "
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		written map[string]int64
		use     map[string]volumes.Use
		want    string
	}{
		"no limit":                    {pod: podOf("web", "a"), written: map[string]int64{"a": 1 << 40}},
		"at the limit":                {pod: limit(podOf("web", "a"), "a", "100"), written: map[string]int64{"a": 100}},
		"beyond the limit":            {pod: limit(podOf("web", "a"), "a", "1Ki"), written: map[string]int64{"a": 1025}, want: all + "1Ki. "},
		"one beyond its own":          {pod: limit(limit(podOf("web", "a", "b"), "a", "100"), "b", "50"), written: map[string]int64{"a": 101, "b": 1}, want: one + `"100". `},
		"one without, together":       {pod: limit(podOf("web", "a", "b"), "a", "100"), written: map[string]int64{"a": 60, "b": 60}, want: all + "100. "},
		"what the volumes have, too":  {pod: withVolumes, written: map[string]int64{"a": 60}, use: map[string]volumes.Use{"disk": {Bytes: 41}}, want: all + "100. "},
		"volumes of others":           {pod: withVolumes, written: map[string]int64{"a": 60}, use: map[string]volumes.Use{"memory": {Bytes: 41, Memory: true}, "claim": {Bytes: 41}}},
		"an init container, a larger": {pod: withInit(false), written: map[string]int64{"i": 30}},
		"beyond an init container":    {pod: withInit(false), written: map[string]int64{"i": 31}, want: all + "30. "},
		"a sidecar and its main":      {pod: withInit(true), written: map[string]int64{"i": 30, "a": 10}},
		"beyond both":                 {pod: withInit(true), written: map[string]int64{"i": 31, "a": 10}, want: all + "40. "},
	} {
		if got := exceededStorage(c.pod, c.written, c.use); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestPodThatWritesMoreThanItMayIsEvicted(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		good, bad, critic := limit(podOf("good", "main"), "main", "1Mi"), limit(podOf("bad", "main"), "main", "1Mi"), limit(podOf("critic", "main"), "main", "1Mi")
		critic.Spec.Priority = ptr.To[int32](critical)
		for _, pod := range []*corev1.Pod{good, bad, critic} {
			w.create(pod)
			w.awaitRunning(pod)
		}
		for name, bytes := range map[string]uint64{"good": 1000 << 10, "bad": 1000 << 10, "critic": 2 << 20} {
			c, _ := w.Find(name, "main")
			w.SetUsage(c.ID, fakecri.Usage{DiskBytes: bytes})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, pod := range []*corev1.Pod{good, bad, critic} {
			if s := w.last(pod.UID); s.Phase != corev1.PodRunning {
				t.Fatalf("pod %s: got %s, want it running", pod.Name, dump(s))
			}
		}
		c, _ := w.Find("bad", "main") // its log is on the disk, too
		write(t, filepath.Join(filepath.Dir(c.LogPath), "9.log"), strings.Repeat("x", 100<<10))
		begin := time.Now()
		const message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
		s := w.await(bad, "evicted", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		if s.Reason != "Evicted" || s.Message != message || len(w.eventsOf("Evicted "+message)) != 1 {
			t.Errorf("got %s and events %q", dump(s), w.eventsOf("Evicted"))
		}
		if took := time.Since(begin); took > measureEvery+5*time.Second {
			t.Errorf("it took %v", took)
		}
		if s := w.last(good.UID); s.Phase != corev1.PodRunning {
			t.Errorf("the other pod: got %s, want it running", dump(s))
		}
	})
}
