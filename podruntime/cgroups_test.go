// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// podGroups returns the existing cgroups of pods, by their paths below the directory of the node.
func podGroups(t *testing.T, root string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"pods-vk-*/pod*", "pods-vk-*/*/pod*"} {
		groups, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			_, below, _ := strings.Cut(strings.TrimPrefix(g, root+"/"), "/")
			found = append(found, below)
		}
	}
	return found
}

// TestPodHasACgroupAsLongAsItLives: the pod's containers are in its cgroup, refused processes are reported in an
// event, and the cgroup is removed with the pod.
func TestPodHasACgroupAsLongAsItLives(t *testing.T) {
	root := t.TempDir()
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.kill()
		w.configure = func(c *Config) { c.CgroupParent, c.CgroupRoots, c.PodPidsLimit = "/", map[string]string{"": root}, 50 }
		w.start()
		pod := podOf("web", "main")
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		w.create(pod)
		w.awaitRunning(pod)
		groups := podGroups(t, root)
		if len(groups) != 1 || groups[0] != "burstable/pod"+string(pod.UID) {
			t.Fatalf("groups of pods: got %v", groups)
		}
		c, _ := w.Find("web", "main")
		for _, s := range w.Sandboxes() {
			if got := s.Config.GetLinux().GetCgroupParent(); s.ID == c.SandboxID && !strings.HasSuffix(got, "/burstable/pod"+string(pod.UID)) {
				t.Errorf("the runtime is told the cgroup %q", got)
			}
		}
		group, err := filepath.Glob(filepath.Join(root, "pods-vk-*", "burstable", "pod*"))
		if err != nil || len(group) != 1 {
			t.Fatal(group, err)
		}
		events := filepath.Join(group[0], "pids.events")
		if err := os.WriteFile(events, []byte("max 3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if told := w.eventsOf("PidsLimitReached"); len(told) != 1 || !strings.Contains(told[0], "as it may, 50 (podPidsLimit): it was refused 3 more") {
			t.Errorf("events: got %v", told)
		}
		w.restart(pod)
		w.awaitRunning(pod)
		time.Sleep(time.Minute)
		if told := w.eventsOf("PidsLimitReached"); len(told) != 1 {
			t.Errorf("after a restart: got events %v, want no new one", told)
		}
		if err := os.Remove(events); err != nil { // the kernel removes its files with the group, but these files would keep it
			t.Fatal(err)
		}
		left := filepath.Join(filepath.Dir(group[0]), "podgone")
		if err := os.Mkdir(left, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * leftoversEvery)
		if got := podGroups(t, root); len(got) != 1 || got[0] != groups[0] {
			t.Errorf("after a restart: got the groups %v, want that of the pod alone", got)
		}
		w.delete(pod, 1)
		w.awaitGone(pod)
		if got := podGroups(t, root); len(got) != 0 {
			t.Errorf("after the deletion: got the groups %v", got)
		}
	})
}

// TestCgroupThatIsGoneIsMadeAgain: a sandbox on disk may outlive the cgroups of its host. The restart of a
// container makes the pod's cgroup again.
func TestCgroupThatIsGoneIsMadeAgain(t *testing.T) {
	root := t.TempDir()
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		w.kill()
		w.configure = func(c *Config) { c.CgroupParent, c.CgroupRoots, c.PodPidsLimit = "/", map[string]string{"": root}, 50 }
		w.start()
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		group, err := filepath.Glob(filepath.Join(root, "pods-vk-*", "besteffort", "pod*"))
		if err != nil || len(group) != 1 {
			t.Fatal(group, err)
		}
		if err := os.RemoveAll(group[0]); err != nil {
			t.Fatal(err)
		}
		c, _ := w.Find("web", "main")
		w.Exit(c.ID, 1, "")
		w.await(pod, "restarted", func(s *corev1.PodStatus) bool { return s.ContainerStatuses[0].RestartCount == 1 })
		if _, err := os.Stat(group[0]); err != nil {
			t.Errorf("the container is made where the pod has no cgroup: %v", err)
		}
	})
}

// TestLimitOfAPodCountsItsOverhead: the limits of a pod's cgroup include the overhead of its RuntimeClass.
func TestLimitOfAPodCountsItsOverhead(t *testing.T) {
	pod := podOf("web", "main")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("100Mi")}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("20Mi")}
	c := cgroups{pids: 9}
	if l := c.podLimits(pod); l.Memory != 120<<20 || l.CPUQuota != 125_000 || l.CPUPeriod != 100_000 || l.CPUShares != 1280 || l.Pids != 9 {
		t.Errorf("got %+v", l)
	}
	pod.Spec.Containers[0].Resources.Limits = nil
	if l := c.podLimits(pod); l.Memory != -1 || l.CPUQuota != 0 || l.CPUShares != 256 {
		t.Errorf("without limits of the container: got %+v", l)
	}
}

// TestSandboxHasRoomBesideItsContainers: a sandbox with a kernel of its own, in the pod's cgroup, gets room in
// addition to the limits of the containers.
func TestSandboxHasRoomBesideItsContainers(t *testing.T) {
	pod := podOf("web", "main")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("20Mi")}
	c := cgroups{sandbox: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}
	if l := c.podLimits(pod); l.Memory != 84<<20 || l.CPUQuota != 26_000 {
		t.Errorf("got %+v", l)
	}
	if pod.Spec.Overhead != nil {
		t.Errorf("the pod itself has now the overhead %v", pod.Spec.Overhead)
	}
	pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("30Mi")}
	if l := c.podLimits(pod); l.Memory != 50<<20 || l.CPUQuota != 1_000 {
		t.Errorf("with an overhead of its own: got %+v", l)
	}
	pod.Spec.Containers[0].Resources.Limits, pod.Spec.Overhead = nil, nil
	if l := c.podLimits(pod); l.Memory != -1 || l.CPUQuota != 0 {
		t.Errorf("without limits of the container: got %+v", l)
	}
}

// TestPidsLimitNeedsCgroups: without cgroups, podPidsLimit is an error, because no other mechanism could enforce
// it.
func TestPidsLimitNeedsCgroups(t *testing.T) {
	node := corev1.NodeStatus{}
	if _, err := openCgroups(Config{PodPidsLimit: 100, Node: &corev1.Node{}}, reserved{}, node); err == nil || !strings.Contains(err.Error(), "podPidsLimit") {
		t.Errorf("without cgroups: got %v, want an error that names podPidsLimit", err)
	}
	for limit, want := range map[int64]int64{0: DefaultPodPidsLimit, -1: -1, 77: 77} {
		c, err := openCgroups(Config{PodPidsLimit: limit, CgroupParent: "/", CgroupRoots: map[string]string{"": t.TempDir()}, Node: &corev1.Node{}}, reserved{}, node)
		if err != nil || c.pids != want {
			t.Errorf("podPidsLimit %d: got %d, %v, want %d", limit, c.pids, err, want)
		}
	}
}

// TestResizedPodHasRoomForItsContainers: the limit of a pod is raised before the limits of its containers, and
// lowered after them.
func TestResizedPodHasRoomForItsContainers(t *testing.T) {
	root := t.TempDir()
	c, err := openCgroups(Config{CgroupParent: "/", CgroupRoots: map[string]string{"": root}, Node: &corev1.Node{}}, reserved{}, corev1.NodeStatus{})
	if err != nil {
		t.Fatal(err)
	}
	pod := podOf("web", "main")
	file := filepath.Join(root, c.podGroup(sized(pod, "100Mi")), "memory.max")
	if err := c.makeGroup(pod); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // the kernel makes it
		t.Fatal(err)
	}
	limit := func() string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, step := range []struct{ to, before, after string }{
		{"100Mi", "104857600", "104857600"},
		{"200Mi", "209715200", "209715200"},
		{"50Mi", "209715200", "52428800"},
	} {
		during := ""
		err := c.resizeGroup(sized(pod, step.to), func() error { during = limit(); return nil })
		if err != nil || limit() != step.after || step.to != "100Mi" && during != step.before {
			t.Errorf("to %s: %v, the limit is %s while containers change and %s after, want %s and %s", step.to, err, during, limit(), step.before, step.after)
		}
	}
}

// sized gives the container of a pod a limit of memory.
func sized(pod *corev1.Pod, memory string) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourceCPU: resource.MustParse("1")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	return pod
}
