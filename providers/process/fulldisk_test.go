// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// TestNoisyFullDiskEndsNobody fills the disk by a pod, with no eviction. The other pods keep running, also under
// another daemon. A pod that ends has its true exit code. No new pod starts, and the reason is reported. After
// the deletion of the full pod, everything works as before.
func TestNoisyFullDiskEndsNobody(t *testing.T) {
	eachRuntime(t, func(t *testing.T, config process.Config) {
		for what, script := range map[string]string{
			"bytes":  "while :; do cat /dev/zero >> /fill; sleep 0.02; done",
			"inodes": "mkdir /d; n=0; while :; do true > /d/$n && n=$((n+1)) || sleep 0.02; done 2> /dev/null",
		} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				fullDisk(t, config, script)
			})
		}
	})
}

func fullDisk(t *testing.T, config process.Config, script string) {
	config.EvictionHard = map[string]string{}
	m := newNoisyNode(t, config, "size=48m,nr_inodes=1000")
	quiet := m.run("quiet", "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.05; done", nil)
	id := m.running("quiet")
	ends := m.run("ends", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.1; done", nil)
	later := m.run("later", "trap 'exit 8' TERM; echo ready; while :; do sleep 0.1; done", nil)
	m.until("it to listen", func() bool { return m.said("ends") == "ready\n" && m.said("later") == "ready\n" })
	noisy := m.run("noisy", script, nil)
	m.running("noisy")
	stop := m.watch("quiet")
	m.untilFull()
	if out, err := m.exec("ends", "kill -TERM 1"); err != nil {
		t.Errorf("a command on a full disk: %q, %v", out, err)
	}
	m.awaitPhase("ends", corev1.PodFailed)
	m.exitCode("ends", 7)
	fresh := m.run("fresh", "exec sleep 600", nil)
	m.hears("Failed", "no space left on device")
	stop()

	m.untilFull()
	m.stop()
	m.last = map[string]corev1.PodStatus{}
	m.start()
	for _, pod := range []*corev1.Pod{quiet, ends, later, noisy, fresh} {
		if err := m.pods.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if now := m.running("quiet"); now != id {
		t.Errorf("after a restart pod quiet has container %s, want %s", now, id)
	}
	stop = m.watch("quiet")
	m.awaitPhase("ends", corev1.PodFailed)
	m.exitCode("ends", 7)
	m.running("later") // the daemon knows the pod again
	if out, err := m.exec("later", "kill -TERM 1"); err != nil {
		t.Errorf("a command on a full disk: %q, %v", out, err)
	}
	m.awaitPhase("later", corev1.PodFailed)
	m.untilFull() // full as before, so that the pod is deleted on a full disk
	m.exitCode("later", 8)

	m.delete(noisy)
	m.running("fresh")
	before := strings.Count(m.said("quiet"), "\n")
	m.until("the log to go on", func() bool { return strings.Count(m.said("quiet"), "\n") > before })
	stop()
	for line := range strings.Lines(m.said("quiet")) {
		if !strings.HasPrefix(line, "line ") || !strings.HasSuffix(line, "\n") {
			t.Errorf("in the log is %q", line)
		}
	}
	m.delete(quiet, ends, later, fresh)
	m.nothing()
}

// TestSandboxIsRemovedFromAFullDisk checks that removing a pod needs no space on the disk, because only the
// removal makes room.
func TestSandboxIsRemovedFromAFullDisk(t *testing.T) {
	needRunc(t)
	disk := t.TempDir()
	if err := unix.Mount("disk", disk, "tmpfs", 0, "size=48m,mode=700"); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	w := open(t, func(c *process.Config) {
		c.StateDir, c.Isolation = filepath.Join(disk, "state"), process.IsolationRunc
	})
	f, err := os.Create(filepath.Join(disk, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 64<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	if err := w.StopPodSandbox(t.Context(), w.sandbox); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := w.RemovePodSandbox(t.Context(), w.sandbox); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// untilFull waits until the disk is full. The pod that fills it continues when other pods free some space.
func (m *noisyNode) untilFull() {
	m.t.Helper()
	m.until("the disk to be full", func() bool {
		bytes, files := m.free()
		return bytes == 0 || files == 0
	})
}

// said returns the log of a pod.
func (m *noisyNode) said(name string) string {
	m.t.Helper()
	r, err := m.pods.GetContainerLogs(m.t.Context(), "default", name, "main", api.ContainerLogOpts{})
	if err != nil {
		return "" // the container has no log yet
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m *noisyNode) exitCode(name string, want int32) {
	m.t.Helper()
	s := m.status(name)
	if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Terminated == nil || s.ContainerStatuses[0].State.Terminated.ExitCode != want {
		m.t.Errorf("pod %s: got %v, want exit code %d", name, s.ContainerStatuses, want)
	}
}
