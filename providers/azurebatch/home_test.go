// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/azurebatch"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// home is a cluster with one node, as a provider sees it, and its own Batch account.
type home struct {
	*remotetest.Home
	cloud  *cloud
	config Config
	pace   pace
}

func newHome(t *testing.T, pool emulated.Pool, nodes int, runner emulated.Runner) *home {
	t.Helper()
	c := testCloud(t, pool, nodes, runner)
	h := &home{remotetest.NewHome(t, "vk-0"), c, c.config("home"), quick()}
	if runner != nil { // no machine executes the program, and the program of the test is large
		h.config.Program = filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(h.config.Program, []byte("a program"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// open makes a provider without running it.
func (h *home) open() *driver {
	h.Helper()
	config, err := h.config.complete()
	if err != nil {
		h.Fatal(err)
	}
	d, err := newDriver(h.Input(), config, h.pace)
	if err != nil {
		h.Fatal(err)
	}
	return d
}

// start runs a provider until stop is called, or the test ends.
func (h *home) start() (d *driver, stop func()) {
	h.Helper()
	d = h.open()
	return d, h.Run(d.kit)
}

// shell returns a pod whose container runs a script on a machine of the pool. It skips the test if tasks cannot run as root.
func (h *home) shell(name, script string) *corev1.Pod {
	h.Helper()
	if os.Geteuid() != 0 {
		h.Skip("tasks run as root: run the test as root, as CI does")
	}
	pod := h.Pod("default", name, program.Program{})
	pod.Spec.ServiceAccountName, pod.Spec.RestartPolicy, pod.Spec.TerminationGracePeriodSeconds = "", corev1.RestartPolicyNever, new(int64(1))
	pod.Spec.Containers[0] = corev1.Container{Name: "main", Image: "none", Command: []string{"/bin/sh", "-c", script}}
	return pod
}

// untilFailed waits until the pod has failed, and returns the pod.
func (h *home) untilFailed(d *driver, pod *corev1.Pod) (got *corev1.Pod) {
	h.Helper()
	h.Until("pod "+pod.Name+" has failed", func() (bool, string) {
		var err error
		if got, err = d.kit.GetPod(h.Context(), pod.Namespace, pod.Name); err != nil {
			return false, err.Error()
		}
		return got.Status.Phase == corev1.PodFailed, string(got.Status.Phase) + " " + got.Status.Message
	})
	return got
}

// outside returns a file that containers can write. Each container has its own /tmp.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "batch-") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "runs")
}

// still is a Runner whose tasks report that they run, and never end. It counts the runs of each pod.
type still struct {
	mu   sync.Mutex
	runs map[string]int // guarded by mu; keyed by the IDs of tasks
	put  func(name string, data []byte, meta map[string]string)
}

// Run implements emulated.Runner.
func (s *still) Run(ctx context.Context, start emulated.Start) (int, error) {
	s.mu.Lock()
	s.runs[start.ID]++
	s.mu.Unlock()
	err := s.write(start.Job, types.UID(strings.TrimPrefix(start.ID, "vk-")), podjob.Status{Host: start.Node, Pod: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}}})
	if err != nil {
		return 1, err
	}
	<-ctx.Done()
	return 137, nil
}

// write writes a status as the program of a pod does.
func (s *still) write(job string, uid types.UID, status podjob.Status) error {
	data, meta, err := podblobs.Written(status)
	if err == nil {
		s.put(statusBlob(job, uid), data, meta)
	}
	return err
}

func newStill() *still { return &still{runs: map[string]int{}} }
