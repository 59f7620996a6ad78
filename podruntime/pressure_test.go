// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// machine has the free resources of a world, in percent.
type machine struct {
	mu    sync.Mutex
	disk  uint64         // guarded by mu
	ram   uint64         // guarded by mu
	pids  int64          // guarded by mu
	fails error          // guarded by mu: of the usage of pods
	nodes []*corev1.Node // guarded by mu: reports
	// unused makes the disk full as long as the image named unused exists.
	unused bool // guarded by mu
	// filler is a pod that keeps the disk full as long as it has a container.
	filler string // guarded by mu
	// sample is the last measurement. Like a real measurement, it is cached for a while.
	sample *statsv1alpha1.NodeStats // guarded by mu
	taken  time.Time                // guarded by mu
}

// underPressure lets a world evict pods below 10 % of disk, memory and processes.
func (w *world) underPressure() *machine {
	m := &machine{disk: 50, ram: 50, pids: 50}
	w.kill()
	w.evictionHard = map[string]string{"memory.available": "10%", "nodefs.available": "10%", "pid.available": "10%"}
	w.measure = func(pods func(context.Context) (*statsv1alpha1.Summary, error)) func(context.Context) (*statsv1alpha1.Summary, error) {
		return func(ctx context.Context) (*statsv1alpha1.Summary, error) {
			summary, err := pods(ctx)
			if err != nil {
				return nil, err
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.sample == nil || time.Since(m.taken) >= stats.Freshness {
				all, rest, disk := uint64(100), 100-m.ram, m.disk
				if m.unused && w.has("unused") {
					disk = 5
				}
				if _, there := w.Find(m.filler, "main"); there {
					disk = 5
				}
				m.taken, m.sample = time.Now(), &statsv1alpha1.NodeStats{
					Fs:     &statsv1alpha1.FsStats{AvailableBytes: ptr.To(disk), CapacityBytes: &all},
					Memory: &statsv1alpha1.MemoryStats{AvailableBytes: ptr.To(m.ram), WorkingSetBytes: &rest},
					Rlimit: &statsv1alpha1.RlimitStats{MaxPID: ptr.To(int64(100)), NumOfRunningProcesses: ptr.To(100 - m.pids)},
				}
			}
			changed := *summary
			changed.Node = *m.sample
			return &changed, m.fails
		}
	}
	w.start()
	w.runtime.NotifyNodeStatus(w.t.Context(), func(n *corev1.Node) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.nodes = append(m.nodes, n)
	})
	return m
}

// set changes the free resources, and waits until the evictor has checked.
func (m *machine) set(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	time.Sleep(pressureEvery + time.Second)
	synctest.Wait()
}

// pressure returns the conditions that are true in the last report.
func (m *machine) pressure() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.nodes) == 0 {
		return "not reported"
	}
	var names []string
	for _, c := range m.nodes[len(m.nodes)-1].Status.Conditions {
		if c.Status == corev1.ConditionTrue && strings.HasSuffix(string(c.Type), "Pressure") {
			names = append(names, string(c.Type)+" "+c.Reason)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (w *world) isEvicted(pod *corev1.Pod) bool { return w.last(pod.UID).Reason == "Evicted" }

func TestPodsAreEvictedOneByOneUntilThereIsEnough(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		little, much, most := podOf("little", "main"), podOf("much", "main"), podOf("most", "main")
		much.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Ki")}
		critic := podOf("critic", "main")
		critic.Spec.Priority = ptr.To[int32](eviction.Critical)
		all := []*corev1.Pod{little, much, most, critic}
		for _, pod := range all {
			w.create(pod)
			w.awaitRunning(pod)
		}
		for name, bytes := range map[string]uint64{"little": 1 << 10, "much": 4 << 10, "most": 9 << 10, "critic": 1 << 20} {
			c, _ := w.Find(name, "main")
			w.SetUsage(c.ID, fakecri.Usage{WorkingSet: bytes})
		}
		m.set(func() { m.ram = 10 })
		if got := m.pressure(); got != "not reported" {
			t.Fatalf("with enough: got %s", got)
		}
		m.set(func() { m.ram = 9 })
		s := w.last(most.UID)
		if !w.isEvicted(most) || w.isEvicted(much) || w.isEvicted(little) {
			t.Fatalf("got %s, %s, %s; want the one that uses most evicted first", dump(s), dump(w.last(much.UID)), dump(w.last(little.UID)))
		}
		const want = "The node was low on resource: memory. Threshold quantity: 10, available: 9. Container main was using 9Ki, request is 0, has larger consumption of memory. "
		if s.Phase != corev1.PodFailed || s.Message != want || len(w.eventsOf("Evicted "+want)) != 1 || len(w.eventsOf("EvictionThresholdMet Attempting to reclaim memory")) == 0 {
			t.Errorf("got %s and events %q, want the message %q", dump(s), w.eventsOf("Evict"), want)
		}
		i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if i < 0 || s.Conditions[i].Reason != "TerminationByKubelet" || s.Conditions[i].Message != want {
			t.Errorf("got conditions %v, want that a Job does not count the failure", s.Conditions)
		}
		if got := m.pressure(); got != "MemoryPressure KubeletHasInsufficientMemory" {
			t.Errorf("got %s", got)
		}
		m.set(func() {})
		if !w.isEvicted(much) || w.isEvicted(little) {
			t.Error("still too little: want the next one evicted, and no further one")
		}
		m.set(func() { m.ram = 50 })
		time.Sleep(eviction.Transition)
		synctest.Wait()
		if got := m.pressure(); got != "" || w.isEvicted(little) || w.isEvicted(critic) {
			t.Errorf("with enough again: got %s", got)
		}
		m.set(func() { m.ram = 1 })
		time.Sleep(time.Minute)
		synctest.Wait()
		if !w.isEvicted(little) || w.isEvicted(critic) {
			t.Error("want all but the critical pod evicted")
		}
	})
}

func TestNodeUnderPressureTakesNoFurtherPods(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		runs := podOf("runs", "main")
		runs.Spec.Priority = ptr.To[int32](eviction.Critical)
		w.create(runs)
		w.awaitRunning(runs)
		m.set(func() { m.pids = 5 })
		if got := m.pressure(); got != "PIDPressure KubeletHasInsufficientPID" {
			t.Errorf("got %s", got)
		}
		late := podOf("late", "main")
		w.create(late)
		s := w.await(late, "refused", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed })
		if s.Reason != "Evicted" || s.Message != "Pod was rejected: The node had condition: [PIDPressure]. " {
			t.Errorf("got %s", dump(s))
		}
		if _, made := w.Find("late", "main"); made {
			t.Error("a container was made for it")
		}
		if err := w.runtime.UpdatePod(t.Context(), runs.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.last(runs.UID); s.Phase != corev1.PodRunning {
			t.Errorf("one that runs already: got %s", dump(s))
		}
	})
}

func TestFullDiskCostsImagesBeforePods(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.AddImage(fakecri.Image{Name: "unused", Size: 1})
		m := w.underPressure()
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(6 * time.Minute) // the image is old enough
		m.set(func() { m.ram, m.fails = 5, errors.New("connection refused") })
		if w.isEvicted(pod) || m.pressure() != "MemoryPressure KubeletHasInsufficientMemory" {
			t.Errorf("it is not known what pods use: got %s and %s", m.pressure(), dump(w.last(pod.UID)))
		}
		m.set(func() { m.ram, m.disk, m.fails = 50, 5, nil })
		if w.has("unused") {
			t.Error("an image that nothing uses is still there")
		}
		if !w.isEvicted(pod) || !strings.HasPrefix(w.last(pod.UID).Message, "The node was low on resource: ephemeral-storage. Threshold quantity: 10, available: 5. ") {
			t.Errorf("got %s, want it evicted, as the disk is still full", dump(w.last(pod.UID)))
		}
	})
}

// TestNoPodIsEvictedWhereImagesWereEnough: after the removal of images, the evictor does not use the measurement
// from before the removal.
func TestNoPodIsEvictedWhereImagesWereEnough(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.AddImage(fakecri.Image{Name: "unused", Size: 1})
		m := w.underPressure()
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(6 * time.Minute) // the image is old enough
		m.set(func() { m.unused = true })
		if w.has("unused") || w.isEvicted(pod) {
			t.Errorf("the image is there: %t; got %s, want it running", w.has("unused"), dump(w.last(pod.UID)))
		}
	})
}

// TestFullDiskIsSeenWhileImagesCannotGo: a hanging removal of an image does not prevent an eviction.
func TestFullDiskIsSeenWhileImagesCannotGo(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.AddImage(fakecri.Image{Name: "unused", Size: 1})
		m := w.underPressure()
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		time.Sleep(6 * time.Minute)
		w.Hang("RemoveImage", 10)
		m.set(func() { m.disk = 5 })
		time.Sleep(freeTime + pressureEvery)
		synctest.Wait()
		if !w.isEvicted(pod) {
			t.Errorf("got %s, want it evicted", dump(w.last(pod.UID)))
		}
	})
}

// TestWhoListensLateHearsOfPressure: a listener that registers late gets the current conditions, because the node is registered after the pods from
// before a restart are known.
func TestWhoListensLateHearsOfPressure(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		m.set(func() { m.ram = 5 })
		var heard *corev1.Node
		w.runtime.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { heard = n })
		if heard == nil || !slices.ContainsFunc(heard.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeMemoryPressure && c.Status == corev1.ConditionTrue
		}) {
			t.Errorf("got %v, want MemoryPressure", heard)
		}
	})
}

// TestPodThatDoesNotEndKeepsNoOtherFromBeingEvicted: each eviction is reported once, and the next pod is evicted
// although an earlier pod does not end.
func TestPodThatDoesNotEndKeepsNoOtherFromBeingEvicted(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		for _, name := range []string{"a", "b", "c"} {
			w.create(podOf(name, "main"))
			w.awaitRunning(podOf(name, "main"))
		}
		w.Delay("StopContainer", 10*time.Hour)
		m.set(func() { m.ram = 5 })
		time.Sleep(4 * evictedTime)
		synctest.Wait()
		if n := len(w.eventsOf("Evicted The node was low")); n != 3 {
			t.Errorf("got %d pods evicted, want all 3, each once", n)
		}
	})
}

// TestEvictionWaitsForTheLastOne: the evictor waits until an evicted pod has ended, because its resources are
// free only then.
func TestEvictionWaitsForTheLastOne(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		for _, name := range []string{"a", "b"} {
			w.create(podOf(name, "main"))
			w.awaitRunning(podOf(name, "main"))
		}
		w.Delay("StopPodSandbox", evictedTime-5*time.Second)
		count := func() int { return len(w.eventsOf("Evicted The node was low")) }
		m.set(func() { m.ram = 5 })
		m.set(func() {})
		if n := count(); n != 1 {
			t.Errorf("got %d pods evicted while the first one ends, want 1", n)
		}
		time.Sleep(evictedTime)
		synctest.Wait()
		if n := count(); n != 2 {
			t.Errorf("got %d pods evicted after the first one has ended, want 2", n)
		}
	})
}

// TestPodThatRunsIsNotRefusedAfterARestart: pressure does not refuse a running pod; only an eviction ends it.
func TestPodThatRunsIsNotRefusedAfterARestart(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.underPressure()
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
		w.kill()
		w.start()
		w.runtime.workers.conditions.report([]corev1.NodeConditionType{corev1.NodePIDPressure})
		again := pod.DeepCopy()
		again.Status = *w.last(pod.UID)
		if err := w.runtime.UpdatePod(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := w.last(pod.UID); s.Phase != corev1.PodRunning {
			t.Errorf("got %s, want it running", dump(s))
		}
	})
}

// TestNoPodIsEvictedBeforeTheSpecsOfOthersAreKnown: after a restart, the specs of pods come one by one. The
// first pod must not be evicted for the resources of others. The evictor does not wait for ever for a spec that
// never comes.
func TestNoPodIsEvictedBeforeTheSpecsOfOthersAreKnown(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it never comes": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
				m := w.underPressure()
				pods := []*corev1.Pod{podOf("a", "main"), podOf("b", "main")}
				for _, pod := range pods {
					pod.Spec.NodeName = "n1"
					w.create(pod)
					w.awaitRunning(pod)
				}
				update := func(pod *corev1.Pod) {
					again := pod.DeepCopy()
					again.Status = *w.last(pod.UID)
					if err := w.runtime.UpdatePod(t.Context(), again); err != nil {
						t.Fatal(err)
					}
				}
				w.kill()
				w.start()
				update(pods[0])
				m.set(func() { m.ram = 5 })
				if w.isEvicted(pods[0]) {
					t.Error("the pod whose spec came first is evicted before that of the other one is known")
				}
				if comes {
					update(pods[1])
					m.set(func() {})
				} else {
					time.Sleep(specTime)
					synctest.Wait()
				}
				if !w.isEvicted(pods[0]) && !w.isEvicted(pods[1]) {
					t.Error("none is evicted")
				}
			})
		})
	}
}

// TestAPodThatWaitsForRoomIsNotEvicted: a pod that waits for disk space uses no resources. Its status has the reason for the wait.
func TestAPodThatWaitsForRoomIsNotEvicted(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		full, waits := podOf("full", "main"), podOf("waits", "main")
		w.create(full)
		w.awaitRunning(full)
		w.Fail("RunPodSandbox", -1, errors.New("make the sandbox: write 1f3a: no space left on device"))
		w.create(waits)
		synctest.Wait()
		const want = "The pod waits for room on the disk of the node: no space left on device"
		if s := w.last(waits.UID); s.ContainerStatuses[0].State.Waiting.Message != want {
			t.Errorf("got %s, want the message %q", dump(s), want)
		}
		m.set(func() { m.disk = 5 })
		time.Sleep(freeTime)
		synctest.Wait()
		if w.isEvicted(waits) || !w.isEvicted(full) {
			t.Fatalf("got %s and %s, want the pod evicted that has something", dump(w.last(waits.UID)), dump(w.last(full.UID)))
		}
		m.set(func() { m.disk = 50 })
		w.Fail("RunPodSandbox", 0, nil)
		w.awaitRunning(waits)
	})
}

// TestWhatEndedGoesBeforeAnotherPodIsEvicted: the containers of an evicted pod are removed before another pod is
// evicted, because they keep the disk space that they filled.
func TestWhatEndedGoesBeforeAnotherPodIsEvicted(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		m := w.underPressure()
		full, quiet := podOf("full", "main"), podOf("quiet", "main")
		full.CreationTimestamp.Time, quiet.CreationTimestamp.Time = time.Now(), time.Now().Add(time.Second)
		for _, pod := range []*corev1.Pod{full, quiet} {
			w.create(pod)
			w.awaitRunning(pod)
		}
		m.set(func() { m.filler = "full" })
		time.Sleep(5 * freeTime)
		synctest.Wait()
		if !w.isEvicted(full) || w.isEvicted(quiet) {
			t.Fatalf("got %s and %s, want the first one evicted only", dump(w.last(full.UID)), dump(w.last(quiet.UID)))
		}
		if s := w.last(full.UID); s.Phase != corev1.PodFailed || s.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("without its containers, the pod says %s", dump(s))
		}
		if _, there := w.Find("full", "main"); there {
			t.Error("the container of the pod that was evicted is still there")
		}
	})
}

// TestContainerThatCannotBeRemovedLeavesTimeForImages: the removal of images gets half of the time for making
// room, even if the removal of a container hangs.
func TestContainerThatCannotBeRemovedLeavesTimeForImages(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.AddImage(fakecri.Image{Name: "unused", Size: 1})
		w.underPressure()
		pod := podOf("done", "main")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(pod)
		w.awaitRunning(pod)
		c, _ := w.Find("done", "main")
		w.Exit(c.ID, 0, "Completed")
		w.await(pod, "ended", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodSucceeded })
		time.Sleep(6 * time.Minute) // the image is old enough
		w.Delay("RemoveContainer", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.runtime.evictor.freeDisk(ctx) //nolint:errcheck // it is asked for what it removes
		time.Sleep(freeTime/2 - time.Second)
		synctest.Wait()
		if _, there := w.Find("done", "main"); !there || !w.has("unused") {
			t.Fatal("the container is not waited for")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if w.has("unused") {
			t.Error("an image that nothing uses is still there")
		}
	})
}

func TestEvictionThatCannotBe(t *testing.T) {
	if _, err := newEvictor(Config{EvictionHard: map[string]string{"memory.free": "1"}}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "memory.free") {
		t.Errorf("got %v, want an error about memory.free", err)
	}
}
