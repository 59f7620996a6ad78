// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// TestCommandThatHangsIsKilled: a command is killed at its timeout, although its parent is a program that waits for it.
func TestCommandThatHangsIsKilled(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	e := enter.Entry{Argv: []string{"/bin/sleep", "300"}, Dir: "/", Root: t.TempDir()}
	p, err := launchContainer(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.process.Kill()
		_, _ = p.process.Wait()
		p.close()
	})
	r := newRuntime(t.TempDir(), "")
	r.containers["c"] = &container{id: "c", spec: e, pid: p.process.Pid, ended: make(chan struct{})}
	began := time.Now()
	_, _, err = r.ExecSync(t.Context(), "c", []string{"/bin/sleep", "20"}, time.Second)
	if status.Code(err) != codes.DeadlineExceeded || time.Since(began) > 15*time.Second {
		t.Errorf("after %v: %v, want the end of its time", time.Since(began), err)
	}
}

// TestFilesOfOthersAreHidden: a container sees an empty directory instead of the directory with the files of pods, and volumes can be mounted in it.
func TestFilesOfOthersAreHidden(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	shared, volume := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(shared, "canary"), filepath.Join(volume, "own")} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := enter.Entry{
		Argv: []string{"/bin/sh", "-c", "cd " + shared + "; echo * v/*"}, Dir: "/", Root: t.TempDir(), Hide: shared, Env: []string{"PATH=/bin:/usr/bin"},
		Mounts: []enter.Mount{{Source: volume, Target: filepath.Join(shared, "v")}},
	}
	p, err := launchContainer(e)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	out, err := io.ReadAll(p.stdout)
	_, _ = p.process.Wait()
	if err != nil || string(out) != "v v/own\n" {
		t.Errorf("the container sees %q, %v", out, err)
	}
}

// TestConfinedContainerIsNotRootOfItsMachine: root in the container cannot mount, make devices, or read the memory or traffic of the machine. It can
// access its own files.
func TestConfinedContainerIsNotRootOfItsMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	script := "mount -t tmpfs x /tmp 2>/dev/null && echo mounts; mknod /tmp/d c 1 1 2>/dev/null && echo makes devices; " +
		"dd if=/dev/mem of=/dev/null bs=1 count=1 2>/dev/null && echo reads memory; " +
		"caps=$(sed -n 's/^CapBnd:.*\\(....\\)$/\\1/p' /proc/self/status); [ $((0x$caps & 0x3000)) = 0 ] || echo sees the network; chown 1 /tmp/f && echo owns"
	for confined, want := range map[bool]string{true: "owns\n", false: "mounts\nmakes devices\n"} {
		tmp := t.TempDir()
		if err := os.WriteFile(filepath.Join(tmp, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		e := enter.Entry{
			Argv: []string{"/bin/sh", "-c", script}, Dir: "/", Root: t.TempDir(), Env: []string{"PATH=/bin:/usr/bin"}, Confined: confined,
			Mounts: []enter.Mount{{Source: tmp, Target: "/tmp"}},
		}
		p, err := launchContainer(e)
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(p.stdout)
		_, _ = p.process.Wait()
		p.close()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("confined %t: the container can do %q, %v, want %q", confined, out, err, want)
		}
	}
}
