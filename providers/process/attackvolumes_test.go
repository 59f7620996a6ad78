// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// part returns a function that changes a configuration to mount and list the path way of a volume.
func part(volume, way string) func(*runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) {
		c.Command = []string{"ls", "/m"}
		c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/m", ImageSubPath: way})
	}
}

// volumeWithTrap returns a volume with the harmless directories d and sub/d, and a directory of the machine.
func volumeWithTrap(t *testing.T) (volume, outside string) {
	t.Helper()
	volume, outside = filepath.Join(t.TempDir(), "volume"), t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(volume, "d/sub"), 0o755), os.WriteFile(filepath.Join(volume, "d/inside"), nil, 0o600),
		os.WriteFile(filepath.Join(volume, "d/sub/inside"), nil, 0o600), os.Mkdir(filepath.Join(outside, "sub"), 0o755),
		os.WriteFile(filepath.Join(outside, secret), nil, 0o600), os.WriteFile(filepath.Join(outside, "sub", secret), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return volume, outside
}

// swap exchanges two files by rename in a loop until the test ends.
func swap(t *testing.T, a, b string) {
	stop, swapped := make(chan struct{}), sync.WaitGroup{}
	swapped.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) // the containers show whether it worked
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		swapped.Wait()
	})
}

// TestSecurityJ9AVolumeChangesBeforeItIsMounted makes a container with a harmless directory that is a link by
// the time the container starts, for the first time or again.
func TestSecurityJ9AVolumeChangesBeforeItIsMounted(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	volume, outside := volumeWithTrap(t)
	d := filepath.Join(volume, "d")
	up, err := filepath.Rel(volume, outside)
	if err != nil {
		t.Fatal(err)
	}
	start := func(name, base, way string, change func() error) (string, error) {
		id, err := w.CreateContainer(t.Context(), w.sandbox, configOf(name, part(base, way)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := w.StartContainer(t.Context(), id); err != nil {
			return "", err
		}
		w.ended(id)
		return w.log(name), nil
	}
	for i, way := range []string{"d", "d/sub", "d//sub"} {
		if said, err := start(fmt.Sprint("good-", i), volume, way, func() error { return nil }); err != nil || !strings.Contains(said, "inside") {
			t.Errorf("%s: %q, %v", way, said, err)
		}
		for k, link := range []string{outside, up, "/proc/self/root" + outside, "/proc/1/root"} {
			if strings.HasPrefix(link, "/proc/1/") && i > 0 {
				continue
			}
			said, err := start(fmt.Sprintf("bad-%d-%d", i, k), volume, way, func() error { return errors.Join(os.Rename(d, d+".was"), os.Symlink(link, d)) })
			if err == nil || !strings.Contains(err.Error(), "leads out of the volume") || strings.Contains(err.Error(), "/proc/self/fd") {
				t.Errorf("%s by a link to %s: %q, %v", way, link, said, err)
			}
			if err := errors.Join(os.Remove(d), os.Rename(d+".was", d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Each step must stay beneath the step before: a volume that is a part of a directory shows nothing of the
	// neighbours of that directory.
	if err := os.Mkdir(filepath.Join(filepath.Dir(volume), "neighbour"), 0o755); err != nil {
		t.Fatal(err)
	}
	if said, err := start("neighbour", filepath.Dir(volume), "volume//l", func() error { return os.Symlink("../neighbour", filepath.Join(volume, "l")) }); err == nil {
		t.Errorf("of a neighbour: %q", said)
	}
	if said, err := start("within", volume, "within", func() error { return os.Symlink("d/../d", filepath.Join(volume, "within")) }); err != nil || !strings.Contains(said, "inside") {
		t.Errorf("by a link within the volume: %q, %v", said, err)
	}
	if said, err := start("file", volume, "d/inside", func() error { return nil }); err != nil || !strings.Contains(said, "/m") {
		t.Errorf("a file: %q, %v", said, err)
	}
}

// TestSecurityJ9AVolumeThatChangesAllTheTime lets a container swap a directory with a link to the machine while
// other containers start that mount the directory.
func TestSecurityJ9AVolumeThatChangesAllTheTime(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	volume, outside := volumeWithTrap(t)
	d, link := filepath.Join(volume, "d"), filepath.Join(volume, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	swap(t, d, link)
	got := 0
	for i := range 12 {
		name := fmt.Sprint("c", i)
		id, err := w.tryRun(name, part(volume, []string{"d", "d/sub"}[i%2]))
		if err != nil {
			if !strings.Contains(err.Error(), "leads out of the volume") {
				t.Error(err)
			}
			continue
		}
		w.ended(id)
		if said := w.log(name); strings.Contains(said, secret) || !strings.Contains(said, "inside") {
			t.Errorf("a container got %q", said)
		}
		got++
	}
	t.Logf("%d of 12 containers got the directory", got)
}

// TestSecurityJ9AMountInAVolumeMakesNothingElsewhere lets a container swap a directory of a volume with a link
// to the machine while other containers start that mount something inside that directory.
func TestSecurityJ9AMountInAVolumeMakesNothingElsewhere(t *testing.T) {
	w := open(t, nil)
	volume, outside := volumeWithTrap(t)
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "other"), nil, 0o644); err != nil { //nolint:gosec // for containers
		t.Fatal(err)
	}
	nested := func(targets ...string) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) {
			c.Command = []string{"ls", filepath.Join("/v", targets[0]), "/v"}
			c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/v"})
			for _, target := range targets {
				c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: other, ContainerPath: filepath.Join("/v", target), Readonly: true})
			}
		}
	}
	w.ended(w.run("good", nested("new/er")))
	if said := w.log("good"); !strings.Contains(said, "other") || !strings.Contains(said, "new") {
		t.Errorf("nobody disturbs it: %q", said)
	}
	written := w.run("writes", func(c *runtimeapi.ContainerConfig) {
		nested("d")(c)
		c.Command = []string{"sleep", "600"}
	})
	if _, stderr, err := w.ExecSync(t.Context(), written, []string{"cat", "/v/d/other"}, time.Minute); err != nil {
		t.Errorf("read what is mounted: %s, %v", stderr, err)
	}
	d, link := filepath.Join(volume, "d"), filepath.Join(volume, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	swap(t, d, link)
	for i := range 12 {
		var targets []string
		for k := range 16 {
			targets = append(targets, fmt.Sprintf("d/new-%d-%d", i, k))
		}
		id, err := w.tryRun(fmt.Sprint("c", i), nested(targets...))
		if err != nil {
			continue // gVisor sees the link, or may not write there
		}
		w.ended(id)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Errorf("on the machine is now %v, %v", entries, err)
	}
}
