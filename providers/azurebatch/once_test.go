// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func statusBlob(job string, uid types.UID) string { return podblobs.StatusName(job, uid) }

// TestRequeuedTaskDoesNotRunTwice: if Batch reruns the task of a pod after its machine was lost, the pod does not run again, but fails with the
// reason.
func TestRequeuedTaskDoesNotRunTwice(t *testing.T) {
	for name, c := range map[string]struct {
		lose   func(h *home, id string) error
		reason string
	}{
		"a spot machine is taken back": {func(h *home, id string) error { return h.cloud.LoseNode(id, "preempted") }, "Preempted"},
		"nobody may look at the machine": {func(h *home, id string) error {
			h.cloud.Deny("GetNode")
			return h.cloud.LoseNode(id, "preempted")
		}, "NodeLost"},
		"a machine is started again":     {func(h *home, id string) error { return h.cloud.LoseNode(id, "rebooting") }, "NodeLost"},
		"a machine could not be reached": {func(h *home, id string) error { return h.cloud.Rerun(id) }, "NodeLost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, aPool(), 2, nil)
			file := outside(t)
			d, _ := h.start()
			pod := h.shell("once", "echo run >>"+file+"; sleep 1000")
			h.Create(d.kit, pod)
			h.UntilRuns(d.kit, pod)
			h.Until("its container has written its run", func() (bool, string) {
				_, err := os.Stat(file)
				return err == nil, fmt.Sprint(err)
			})
			if err := c.lose(h, taskID(pod.UID)); err != nil {
				t.Fatal(err)
			}
			got := h.untilFailed(d, pod)
			if got.Status.Reason != c.reason {
				t.Errorf("the reason is %q, want %s: %s", got.Status.Reason, c.reason, got.Status.Message)
			}
			h.Until("the task has run twice, and has ended", func() (bool, string) {
				state, runs := h.cloud.State(taskID(pod.UID))
				return runs == 2 && state == "completed", fmt.Sprintf("%s after %d runs", state, runs)
			})
			h.Until("no process of the pod is left", func() (bool, string) {
				pid := h.cloud.processes.PID(taskID(pod.UID))
				return pid == 0, fmt.Sprint(pid)
			})
			if ran, err := os.ReadFile(file); err != nil || string(ran) != "run\n" {
				t.Errorf("the container has run %d times, %v", strings.Count(string(ran), "run\n"), err)
			}
		})
	}
}

// TestTaskThatIsRequeuedBeforeItBeganRuns: a task that no run has claimed is not lost.
func TestTaskThatIsRequeuedBeforeItBeganRuns(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 0, nil)
	d, _ := h.start()
	pod := h.shell("late", "sleep 1000")
	h.Create(d.kit, pod)
	h.Until("it says why it waits", func() (bool, string) {
		got, err := d.kit.GetPod(t.Context(), pod.Namespace, pod.Name)
		if err != nil {
			return false, err.Error()
		}
		return strings.HasPrefix(got.Status.Message, "the task waits for a machine"), got.Status.Message
	})
	h.cloud.AddNode()
	h.UntilRuns(d.kit, pod)
}

// TestPodWithoutCDIFails: a pod fails with the reason if the CDI specifications of its machine lack the requested devices.
func TestPodWithoutCDIFails(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	h.config.GPUs = GPUs{"vendor.example/gpu", 2}
	d, _ := h.start()
	pod := h.shell("gpu", "sleep 1000")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"vendor.example/gpu": resource.MustParse("1")}
	h.Create(d.kit, pod)
	if got := h.untilFailed(d, pod); !strings.Contains(got.Status.Message, "no CDI specification of this machine has such devices") {
		t.Errorf("it has failed with %s: %s", got.Status.Reason, got.Status.Message)
	}
}

// late is a Runner whose first run of a task is lost before the pod starts.
type late struct{ *still }

// Run implements emulated.Runner.
func (l late) Run(ctx context.Context, start emulated.Start) (int, error) {
	l.mu.Lock()
	first := l.runs[start.ID] == 0
	if first {
		l.runs[start.ID]++
	}
	l.mu.Unlock()
	if first {
		<-ctx.Done()
		return 137, nil
	}
	return l.still.Run(ctx, start)
}

// TestTaskThatIsRequeuedWhileItIsPreparedRuns: the loss of a machine before the pod has started there does not end the pod.
func TestTaskThatIsRequeuedWhileItIsPreparedRuns(t *testing.T) {
	t.Parallel()
	runner := late{newStill()}
	h := newHome(t, aPool(), 2, runner)
	runner.put = h.cloud.Store.PutWith
	d, _ := h.start()
	pod := h.Pod("default", "late", program.Program{})
	pod.Spec.ServiceAccountName = ""
	h.Create(d.kit, pod)
	h.Until("its machine has it", func() (bool, string) {
		state, runs := h.cloud.State(taskID(pod.UID))
		return state == "running" && runs == 1, state
	})
	if err := h.cloud.LoseNode(taskID(pod.UID), "preempted"); err != nil {
		t.Fatal(err)
	}
	var got *corev1.Pod
	h.Until("it has begun, and some lists show it", func() (bool, string) {
		var err error
		if got, err = d.kit.GetPod(t.Context(), pod.Namespace, pod.Name); err != nil {
			return false, err.Error()
		}
		return got.Status.Phase != corev1.PodPending, got.Status.Message
	})
	lists := len(h.cloud.front.Requests("ListTasks"))
	h.Until("more lists show it", func() (bool, string) {
		n := len(h.cloud.front.Requests("ListTasks")) - lists
		return n > 5, fmt.Sprint(n)
	})
	if got, err := d.kit.GetPod(t.Context(), pod.Namespace, pod.Name); err != nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %s %s: %s, %v", got.Status.Phase, got.Status.Reason, got.Status.Message, err)
	}
}

// TestKillBetweenCreateAndAnswerMakesNoDouble: 100 times, a process ends while it creates a pod, before or after Batch has the task, and the next
// process creates the pod again.
func TestKillBetweenCreateAndAnswerMakesNoDouble(t *testing.T) {
	t.Parallel()
	s := newStill()
	pool := aPool()
	pool.Slots = 256
	h := newHome(t, pool, 1, s)
	s.put = h.cloud.Store.PutWith
	var pods []*corev1.Pod
	for i := range 100 {
		d, stop := h.start()
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), program.Program{})
		pod.Spec.ServiceAccountName = ""
		if err := h.Pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(t.Context())
		fault := emulator.Fault{Times: 1, Operations: []string{[]string{"CreateTask", "CreateTask", "PutBlob", "CreateTask"}[i%4]}}
		if i%4 == 0 {
			fault.Answer = func(http.ResponseWriter, *http.Request) { kill(); panic(http.ErrAbortHandler) }
		} else {
			fault.Lose = true
		}
		mend := h.cloud.front.Break(fault)
		if err := d.kit.CreatePod(ctx, pod.DeepCopy()); err == nil {
			t.Fatalf("round %d: nothing was lost", i)
		}
		kill()
		mend()
		if i%2 == 0 { // the process is a new one
			stop()
			d, stop = h.start()
		}
		if err := d.kit.CreatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		h.Until("it runs", func() (bool, string) {
			got, err := d.kit.GetPod(t.Context(), pod.Namespace, pod.Name)
			return err == nil && got.Status.Phase == corev1.PodRunning, fmt.Sprint(err)
		})
		stop()
		pods = append(pods, pod)
	}
	if n := len(h.cloud.Tasks()); n != len(pods) {
		t.Errorf("%d tasks are there for %d pods", n, len(pods))
	}
	for id, n := range s.runs {
		if n != 1 {
			t.Errorf("task %s has run %d times", id, n)
		}
	}
	if len(s.runs) != len(pods) {
		t.Errorf("%d tasks have run for %d pods", len(s.runs), len(pods))
	}
}

// TestBlobsOfPodsAreRemoved: blobs of gone pods and of earlier processes are removed, but not blobs of a pod that may still get its task.
func TestBlobsOfPodsAreRemoved(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 1, nil)
	h.pace.seen = -1
	d := h.open()
	old, young := podblobs.BundleName(d.job, "old"), podblobs.BundleName(d.job, "young")
	h.cloud.Store.Put(old, nil)
	h.cloud.Store.Put(young, nil)
	h.cloud.Store.Age(old, 2*podblobs.OrphanAge)
	h.Run(d.kit)
	pod := h.shell("gone", "echo said; sleep 1000")
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	h.Delete(d.kit, pod)
	h.UntilGone(d.kit, pod)
	h.Until("its blobs are gone", func() (bool, string) {
		names := h.cloud.Store.Names(d.job + "/")
		return len(names) == 1 && names[0] == young, strings.Join(names, " ")
	})
	if len(h.cloud.Tasks()) != 0 {
		t.Errorf("tasks are left: %v", h.cloud.Tasks())
	}
}

// TestRenewalKeepsOrderToStop: a renewal of a pod's files during its deletion does not cancel the stop order.
func TestRenewalKeepsOrderToStop(t *testing.T) {
	t.Parallel()
	s := newStill()
	h := newHome(t, aPool(), 1, s)
	s.put = h.cloud.Store.PutWith
	d, _ := h.start()
	pod := h.Pod("default", "web", program.Program{})
	pod.Spec.ServiceAccountName = ""
	h.Create(d.kit, pod)
	h.UntilRuns(d.kit, pod)
	h.cloud.front.Break(emulator.Fault{Times: 1, Operations: []string{"PutBlob"}, Answer: func(w http.ResponseWriter, r *http.Request) {
		h.Delete(d.kit, pod)
		h.cloud.ServeHTTP(w, r)
	}})
	if err := d.kit.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if meta, _ := h.cloud.Store.Metadata(podblobs.BundleName(d.job, pod.UID)); podblobs.StopOf(meta) == nil {
		t.Errorf("the bundle has the metadata %v, want an order to stop", meta)
	}
}
