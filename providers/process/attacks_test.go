// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// The tests of this file attack the isolation of a runtime. TestOnGVisor runs them, too.

// secret is in a file of the machine that no container may read, and in the environment of one container.
const secret = "s3cr3t-0f-the-mach1ne"

// attacked returns a world for attacks, and the path of a file on the machine with the secret.
func attacked(t *testing.T) (w *world, file string) {
	t.Helper()
	w = open(t, nil)
	file = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o644); err != nil { //nolint:gosec // that a container cannot read it must have another reason
		t.Fatal(err)
	}
	return w, file
}

// shell mounts a shell into a container.
func shell(c *runtimeapi.ContainerConfig) {
	c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: "/bin/busybox", ContainerPath: "/busybox", Readonly: true})
}

func can(capabilities ...string) *runtimeapi.Capability {
	return &runtimeapi.Capability{AddCapabilities: capabilities}
}

// in runs a script in a container and returns its whole output.
func (w *world) in(id, script string) string {
	w.t.Helper()
	out, stderr, err := w.ExecSync(w.t.Context(), id, []string{"/busybox", "sh", "-c", script}, time.Minute)
	return fmt.Sprintf("%s%s%v", out, stderr, err)
}

// TestSecurityJ1AWorkingDirectoryIsNoWayOut tries to leave a container through the working directory of the
// container or of a command in it.
func TestSecurityJ1AWorkingDirectoryIsNoWayOut(t *testing.T) {
	w, file := attacked(t)
	up := strings.Repeat("../", 12)
	// Open a directory of the machine, because runtimes once leaked a descriptor of the cgroup directory.
	leaked, err := syscall.Open("/sys/fs/cgroup", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	volume := t.TempDir()
	if err := os.Mkdir(filepath.Join(volume, "dir"), 0o755); err != nil { //nolint:gosec // of a container
		t.Fatal(err)
	}
	inVolume := func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.WorkingDir = "/v/dir"
		c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/v"})
	}
	main := w.run("main", inVolume, "sleep", "600")
	for fd := 3; fd < max(16, leaked+1); fd++ {
		// Try a directory that is a link from the start, and one that becomes a link while the container runs.
		name, link := "fd"+strconv.Itoa(fd), filepath.Join(volume, "dir")
		if err := errors.Join(os.Remove(link), os.Symlink("/proc/self/fd/"+strconv.Itoa(fd), link)); err != nil {
			t.Fatal(err)
		}
		if said := w.in(main, "/busybox cat "+up+file); strings.Contains(said, secret) {
			t.Errorf("a command in the directory %d reads a file of the machine", fd)
		}
		id, err := w.tryRun(name, inVolume, "/busybox", "sh", "-c", "/busybox cat "+up+file+"; exec /busybox sleep 600")
		if err != nil {
			continue // the container did not start
		}
		if err := w.StopContainer(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(w.log(name), secret) {
			t.Errorf("a container in the directory %d reads a file of the machine", fd)
		}
	}
}

// TestSecurityJ2AGuestSeesTheProcessesOfItsTargetOnly checks kubectl debug --target.
func TestSecurityJ2AGuestSeesTheProcessesOfItsTargetOnly(t *testing.T) {
	w, _ := attacked(t)
	target := w.run("target", nil, "sleep", "604")
	id := w.run("debug", func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: target}
	}, "/busybox", "sleep", "605")
	seen := w.in(id, "/busybox cat /proc/[0-9]*/cmdline | /busybox tr '\\000' ' '")
	if !strings.Contains(seen, "sleep 604") || !strings.Contains(seen, "sleep 605") {
		t.Errorf("want the processes of both, got %q", seen)
	}
	for _, host := range []string{"process.test", "oci.test", "virtual-kubelet", "/sbin/init"} {
		if strings.Contains(seen, host) {
			t.Errorf("it sees a process of the machine: %q", seen)
		}
	}
	if n := len(numbers(w.in(id, "/busybox ls /proc"))); n > 6 {
		t.Errorf("it sees %d processes", n)
	}
}

// TestSecurityJ3TheFirstProcessIsTheContainersOwn checks that a container that may trace its first process gets
// nothing of the machine through it.
func TestSecurityJ3TheFirstProcessIsTheContainersOwn(t *testing.T) {
	w, file := attacked(t)
	id := w.run("main", func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.Linux.SecurityContext.Capabilities = can("SYS_PTRACE")
	}, "/busybox", "sleep", "606")
	if line := w.in(id, "/busybox cat /proc/1/cmdline | /busybox tr '\\000' ' '"); !strings.Contains(line, "sleep 606") {
		t.Errorf("the first process: got %q", line)
	}
	caps := w.in(id, "/busybox grep -h CapEff /proc/1/status /proc/self/status")
	if lines := strings.Fields(caps); len(lines) < 4 || lines[1] != lines[3] {
		t.Errorf("the first process has other capabilities than a command: %s", caps)
	}
	for _, way := range []string{"cwd", "root"} {
		if said := w.in(id, "for p in /proc/[0-9]*; do /busybox cat $p/"+way+"/"+strings.Repeat("../", 12)+file+" $p/"+way+file+"; done"); strings.Contains(said, secret) {
			t.Errorf("a file of the machine is read through %s", way)
		}
	}
}

// TestSecurityJ4NoDescriptorReachesAContainer checks that a container inherits no descriptor of the daemon, nor
// of the process that started the daemon.
func TestSecurityJ4NoDescriptorReachesAContainer(t *testing.T) {
	w, file := attacked(t)
	// A shell or a service manager may leak such a descriptor.
	fd, err := syscall.Open(file, syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	read := "for f in 3 4 5 6 7 8 9 " + strconv.Itoa(fd) + "; do /busybox cat /proc/self/fd/$f; done; /busybox ls -l /proc/1/fd /proc/self/fd"
	id := w.run("main", shell, "/busybox", "sh", "-c", read+"; exec /busybox sleep 600")
	said := w.in(id, read)
	if err := w.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	for what, said := range map[string]string{"the container": w.log("main"), "a command in it": said} {
		if strings.Contains(said, secret) || strings.Contains(said, file) {
			t.Errorf("%s has a descriptor of the daemon: %s", what, said)
		}
	}
}

// TestSecurityJ5ANodeIsNoDevice checks that the capability MKNOD lets a container make a device node, but not
// open the device.
func TestSecurityJ5ANodeIsNoDevice(t *testing.T) {
	w, _ := attacked(t)
	volume := t.TempDir()
	id := w.run("main", func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.Linux.SecurityContext.Capabilities = can("MKNOD", "SYSLOG")
		c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/volume"})
	}, "sleep", "600")
	for _, dir := range []string{"/dev", "/tmp", "/volume"} {
		// The device of kernel messages exists on every machine.
		said := w.in(id, "/busybox mknod "+dir+"/messages c 1 11 && /busybox dd if="+dir+"/messages of=/dev/null bs=8192 count=1")
		// With gVisor, no node is made in a directory of the machine.
		if !strings.Contains(said, "can't open") && !strings.Contains(said, "mknod: "+dir+"/messages: Operation not permitted") {
			t.Errorf("a node in %s is a device of the machine: %s", dir, said)
		}
	}
	if said := w.in(id, "/busybox head -c 4 /dev/zero | /busybox wc -c; echo x >/dev/null"); !strings.HasPrefix(said, "4\n") {
		t.Errorf("the devices that every container has: %s", said)
	}
}

// TestSecurityJ6AVolumeUncoversNothing tries volumes at /dev by name, through a link of another volume, and over
// the device that covers hidden files.
func TestSecurityJ6AVolumeUncoversNothing(t *testing.T) {
	w, _ := attacked(t)
	other := w.Isolation() == process.IsolationGVisor // gVisor is another kernel, whose /proc has nothing of the machine
	links := t.TempDir()
	if err := os.Symlink("/dev", filepath.Join(links, "link")); err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(t.TempDir(), "null")
	if err := os.WriteFile(fake, []byte("not a file of the kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	forged := t.TempDir()
	if err := os.Symlink("/proc/sys/kernel/hostname", filepath.Join(forged, "null")); err != nil {
		t.Fatal(err)
	}
	const hidden = "/proc/timer_list"
	for name, mounts := range map[string][]*runtimeapi.Mount{
		"dev":    {{HostPath: t.TempDir(), ContainerPath: "/dev"}},
		"null":   {{HostPath: fake, ContainerPath: "/dev/null"}},
		"unsure": {{HostPath: fake, ContainerPath: "/dev/../dev/./null"}},
		"link":   {{HostPath: links, ContainerPath: "/l"}, {HostPath: t.TempDir(), ContainerPath: "/l/link"}},
		"forged": {{HostPath: links, ContainerPath: "/l"}, {HostPath: forged, ContainerPath: "/l/link"}},
		"file":   {{HostPath: links, ContainerPath: "/l"}, {HostPath: fake, ContainerPath: "/l/link/null"}},
	} {
		id, err := w.tryRun(name, func(c *runtimeapi.ContainerConfig) {
			shell(c)
			c.Mounts = append(c.Mounts, mounts...)
			c.Linux.SecurityContext.MaskedPaths = []string{hidden, "/proc/kcore", "/sys/firmware"}
			c.Linux.SecurityContext.ReadonlyPaths = []string{"/proc/sys"}
		}, "/busybox", "sleep", "600")
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		if said := w.in(id, "/busybox wc -c <"+hidden); !strings.HasPrefix(said, "0\n") && !(other && strings.Contains(said, "no such file")) {
			t.Errorf("%s: what is hidden can be read: %s", name, said)
		}
		if said := w.in(id, "/busybox cat "+hidden+"; echo x >"+hidden+" && echo written"); strings.Contains(said, "not a file of the kernel") {
			t.Errorf("%s: what is hidden is covered by a file of the pod: %s", name, said)
		}
	}
}

// TestSecurityJ7NoSecretIsOnADisk checks that the environment and the command of a container, which may hold
// secrets, are not on a disk.
func TestSecurityJ7NoSecretIsOnADisk(t *testing.T) {
	w, _ := attacked(t)
	id := w.run("main", func(c *runtimeapi.ContainerConfig) {
		c.Envs = []*runtimeapi.KeyValue{{Key: "PASSWORD", Value: []byte(secret)}}
	}, "/bin/demo", "greet", secret)
	if out, _, err := w.ExecSync(t.Context(), id, []string{"env"}, time.Minute); err != nil || !strings.Contains(string(out), secret) {
		t.Fatalf("the container does not have it: %s, %v", out, err)
	}
	if _, err := w.CreateContainer(t.Context(), w.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "created"}, Image: &runtimeapi.ImageSpec{Image: "demo"}, Command: []string{"sleep", secret},
	}, nil); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(w.config.StateDir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() || strings.Contains(path, "/images/") || strings.Contains(path, "/rootfs/") || entry.Name() == "netns" {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
