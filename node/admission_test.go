// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// roomy gives the node these allocatable resources.
func roomy(resources corev1.ResourceList) func(*PodControllerConfig) {
	return func(cfg *PodControllerConfig) { cfg.NodeAllocatable = func() corev1.ResourceList { return resources } }
}

func asking(name, cpu string) *corev1.Pod {
	pod := bound(name, "")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return pod
}

// TestPodWithoutRoomIsRejected: of ten pods that arrive together, as many run as fit together; an ended pod releases its resources.
func TestPodWithoutRoomIsRejected(t *testing.T) {
	b := memory.New()
	two := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("110")}
	inWorld(t, b, func(w *world) {
		w.but = []string{"S8"} // the history does not contain the capacity
		w.start()
		for i := range 10 {
			w.api.Create(asking(fmt.Sprintf("p%d", i), "600m"))
		}
		w.pass(time.Second)
		runs, last := 0, ""
		for i := range 10 {
			name := fmt.Sprintf("p%d", i)
			switch s := w.api.Pod("d", name).Status; {
			case s.Phase == corev1.PodRunning:
				runs, last = runs+1, name
			case s.Phase != corev1.PodFailed || s.Reason != "OutOfcpu" || s.Message != "Pod was rejected: Node didn't have enough resource: cpu, requested: 600m, used: 1800m, capacity: 2":
				t.Errorf("pod %s is %s %s %q, want it to run or to fail for OutOfcpu", name, s.Phase, s.Reason, s.Message)
			}
		}
		if runs != 3 || len(b.Calls()) != 3 {
			t.Errorf("%d pods run and the backend saw %q, want 3", runs, b.Calls())
		}
		w.halt()
		for i := range 10 {
			w.api.Create(asking(fmt.Sprintf("late%d", i), "600m"))
		}
		w.start() // running pods count before the node has processed them
		w.pass(time.Minute)
		for i := range 10 {
			w.wantPhase(fmt.Sprintf("late%d", i), corev1.PodFailed)
		}
		w.api.Delete("d", last, -1)
		w.pass(time.Minute)
		w.api.Create(asking("later", "600m"))
		w.pass(time.Second)
		w.wantPhase("later", corev1.PodRunning)
	}, declares(capability.All()), roomy(two))
}

// countedPods counts the lists of all pods.
type countedPods struct {
	corev1informers.PodInformer
	lists *atomic.Int32
}

func (c countedPods) Lister() corev1listers.PodLister {
	return countedLister{c.PodInformer.Lister(), c.lists}
}

type countedLister struct {
	corev1listers.PodLister
	lists *atomic.Int32
}

func (c countedLister) List(s labels.Selector) ([]*corev1.Pod, error) {
	c.lists.Add(1)
	return c.PodLister.List(s)
}

// TestRoomIsNotCountedAnewForEachPod: with thousands of pods, recounting would take minutes.
func TestRoomIsNotCountedAnewForEachPod(t *testing.T) {
	const pods = 200
	var lists atomic.Int32
	counted := func(cfg *PodControllerConfig) { cfg.PodInformer = countedPods{cfg.PodInformer, &lists} }
	many := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("1000")}
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		before := lists.Load()
		for i := range pods {
			pod := asking(fmt.Sprintf("p%d", i), "1m")
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(1000 + i)}}
			w.api.Create(pod)
		}
		w.pass(time.Second)
		if n := lists.Load() - before; n > pods/10 {
			t.Errorf("all pods were looked at %d times for %d new ones", n, pods)
		}
		for i := range pods {
			w.api.Delete("d", fmt.Sprintf("p%d", i), -1)
		}
		w.pass(time.Minute)
		reserved, ports, used := w.ctl.worker.admission.allocations.Reserved()
		if cpu := used[corev1.ResourceCPU]; reserved > 0 || ports > 0 || !cpu.IsZero() {
			t.Errorf("when all pods are gone, %d have reserved something, %v of CPU and %d ports", reserved, cpu.String(), ports)
		}
	}, declares(capability.All()), roomy(many), counted)
}

func TestHostPortIsTakenOnce(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.but = []string{"S8"} // as above
		w.start()
		for name, ip := range map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"} {
			pod := bound(name, "")
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, HostIP: ip}}
			w.api.Create(pod)
		}
		w.pass(time.Second)
		w.wantPhase("a", corev1.PodRunning)
		w.wantPhase("b", corev1.PodRunning)
		pod := bound("c", "")
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		w.api.Create(pod)
		w.pass(time.Second)
		if s := w.api.Pod("d", "c").Status; s.Phase != corev1.PodFailed || s.Reason != "NodePorts" || !strings.Contains(s.Message, "host port 80/TCP") {
			t.Errorf("the third pod is %s %s %q, want it to fail for NodePorts", s.Phase, s.Reason, s.Message)
		}
	}, declares(capability.All()))
}

// TestProviderThatDeclaresNothingHasRoom: capacities of such providers are often not meant literally.
func TestProviderThatDeclaresNothingHasRoom(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.api.Create(asking("p", "600m"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
	}, roomy(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}))
}

// TestResourceOfTheClusterIsCountedByOthers: an administrator adds a resource to the Node object, or a scheduler counts a resource for the
// whole cluster. The provider does not know it, and the scheduler has checked it.
func TestResourceOfTheClusterIsCountedByOthers(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		pod := asking("p", "100m")
		pod.Spec.Containers[0].Resources.Requests["example.com/licence"] = resource.MustParse("2")
		w.api.Create(pod)
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
	}, declares(capability.All()), roomy(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}))
}

// TestPodWithoutRoomIsGivenNoSecrets holds that the objects of a rejected pod are not read.
func TestPodWithoutRoomIsGivenNoSecrets(t *testing.T) {
	const canary = "c4n4ry value"
	inWorld(t, memory.New(), func(w *world) {
		w.but = []string{"S8"} // as above
		w.start()
		big := w.withSecret("p", "a", canary)
		big.Spec.Containers[0].Resources = asking("p", "3").Spec.Containers[0].Resources
		w.api.Create(big)
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodFailed)
		said := errors.New("about " + canary)
		if told := w.ctl.RedactError("d", "p", said).Error(); told != said.Error() {
			t.Errorf("told is %q: the Secret was read for a pod without room", told)
		}
		if _, err := w.ctl.secrets.Pod(big); !errdefs.IsNotFound(err) {
			t.Errorf("what the pod may have can be asked for: %v, want not-found", err)
		}
		small := big.DeepCopy()
		small.Name, small.UID = "q", "b"
		small.Spec.Containers[0].Resources = asking("q", "1").Spec.Containers[0].Resources
		w.api.Create(small)
		w.pass(time.Second)
		w.wantPhase("q", corev1.PodRunning)
		if told := w.ctl.RedactError("d", "q", said).Error(); told == said.Error() {
			t.Errorf("told is %q of a pod with room, whose Secret was read", told)
		}
	}, declares(capability.All()), roomy(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("110")}))
}

// TestReservationOfAPodThatIsGone holds that a pod that ran at the start and vanished before the sync lane tracked it keeps no reservation.
func TestReservationOfAPodThatIsGone(t *testing.T) {
	runs, next := asking("p", "600m"), asking("q", "600m")
	runs.UID, next.UID, runs.Status.Phase = "a", "b", corev1.PodRunning
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := indexer.Add(runs); err != nil {
		t.Fatal(err)
	}
	all := capability.All()
	a := &podAdmission{
		declared: &all, allocatable: func() corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")} },
		podCore: &podCore{
			podCache: podCache{pods: corev1listers.NewPodLister(indexer), wanted: func(context.Context, *corev1.Pod) bool { return true }},
			states:   podStates{m: map[string]*podState{}},
		},
	}
	a.reserveAll(t.Context())
	if r := a.admitPod(t.Context(), "d/q", next); r == nil {
		t.Error("a pod is admitted beside one that runs, for which there is no room")
	}
	if err := indexer.Delete(runs); err != nil {
		t.Fatal(err)
	}
	remembered := &podState{}
	remembered.sent.UID = runs.UID
	a.states.m["d/p"] = remembered
	if r := a.admitPod(t.Context(), "d/q", next); r == nil {
		t.Error("a pod is admitted beside one that is gone in the API server, and whose stop is not confirmed")
	}
	remembered.report, remembered.relapsed = &report{uid: runs.UID, status: &corev1.PodStatus{Phase: corev1.PodSucceeded}}, true
	if r := a.admitPod(t.Context(), "d/q", next); r == nil {
		t.Error("a pod is admitted beside one that was said to have ended, and to run after that")
	}
	remembered.report, remembered.stopped = nil, true
	if r := a.admitPod(t.Context(), "d/q", next); r != nil {
		t.Errorf("a pod is refused for one whose stop is confirmed: %s", r.Message)
	}
	a.allocations.Release(next.UID)
	a.allocations.Reserve(runs)
	delete(a.states.m, "d/p")
	if r := a.admitPod(t.Context(), "d/q", next); r != nil {
		t.Errorf("a pod is refused for one that is gone: %s", r.Message)
	}
}

// slowStops ends pods at once, but DeletePod returns a minute later.
type slowStops struct{ declaring }

func (s slowStops) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	defer func() { <-time.After(time.Minute) }()
	return s.declaring.DeletePod(ctx, pod)
}

// TestRoomOfAPodThatEndedIsFreeAtOnce: a scheduler reuses the resources when the API server shows the end of the pod, and binds the next
// pod while DeletePod for the first one is still running.
func TestRoomOfAPodThatEndedIsFreeAtOnce(t *testing.T) {
	for name, grace := range map[string]int64{"deleted": -1, "by force": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, memory.New(), func(w *world) {
				w.start()
				w.api.Create(asking("first", "2"))
				w.pass(time.Second)
				w.wantPhase("first", corev1.PodRunning)
				w.api.Delete("d", "first", grace)
				w.pass(15 * time.Second) // an orphan is stopped only after a while
				if w.api.Pod("d", "first") != nil {
					t.Fatal("the pod is still there: nothing is tried")
				}
				w.api.Create(asking("second", "2"))
				w.pass(time.Second)
				w.wantPhase("second", corev1.PodRunning)
			}, declares(capability.All()), func(cfg *PodControllerConfig) { cfg.Provider = slowStops{cfg.Provider.(declaring)} },
				roomy(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("110")}))
		})
	}
}

// TestRoomOfAPodThatStillRunsIsTaken: the pod was force-deleted, and the backend has not stopped it yet.
func TestRoomOfAPodThatStillRunsIsTaken(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.but = []string{"S8"} // as above
		w.start()
		w.api.Create(asking("first", "2"))
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Delete, Hang: true, Times: 1})
		w.api.Delete("d", "first", 0)
		w.pass(time.Second)
		w.api.Create(asking("second", "2"))
		w.pass(time.Second)
		if s := w.api.Pod("d", "second").Status; s.Reason != "OutOfcpu" {
			t.Errorf("the second pod is %s %s while the first one runs, want it to fail for OutOfcpu", s.Phase, s.Reason)
		}
		b.Heal()
	}, declares(capability.All()), roomy(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourcePods: resource.MustParse("110")}))
}
