// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"golang.org/x/sys/unix"
)

// sharedMount makes a directory of the machine a shared mount. The directory contains another mount with a file.
func sharedMount(t *testing.T, dir string) (file string) {
	t.Helper()
	inner := filepath.Join(dir, "inner")
	must(t, os.MkdirAll(dir, 0o755), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"), unix.Mount("", dir, "", unix.MS_SHARED, ""),
		os.Mkdir(inner, 0o755), unix.Mount("tmpfs", inner, "tmpfs", 0, "size=1m"))
	file = filepath.Join(inner, "precious")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Cleanup(func() {
		if err := detachBelow(dir); err != nil {
			t.Error(err)
		}
	})
	return file
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveUnmountsNothingOfTheMachine: Remove does not change the mounts of the machine. In a copy of a shared mount, an unmount of an inner mount
// would also unmount it at its source.
func TestRemoveUnmountsNothingOfTheMachine(t *testing.T) {
	for _, propagation := range []corev1.MountPropagationMode{corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional} {
		t.Run(string(propagation), func(t *testing.T) {
			w := mounting(t, func(c *Config) { c.HostPaths = []string{filepath.Join(c.Root, "../given")} })
			base := w.cfg.HostPaths[0]
			file := sharedMount(t, base)
			pod := podOf("u", hostPathVolume("h", base, ""), emptyDir("e", "", ""))
			pod.Spec.Containers[0].VolumeMounts[0].MountPropagation = &propagation
			w.setup(pod)
			path := w.mountsOf(pod)[0].HostPath
			if _, err := os.Stat(filepath.Join(path, "inner/precious")); err != nil {
				t.Errorf("what is mounted in a path of the machine is not in the volume: %v", err)
			}
			// A later mount is visible where the propagation requests it.
			later := filepath.Join(base, "later")
			must(t, os.Mkdir(later, 0o755), unix.Mount("tmpfs", later, "tmpfs", 0, "size=1m"), os.WriteFile(filepath.Join(later, "f"), nil, 0o600))
			_, err := os.Stat(filepath.Join(path, "later/f"))
			if seen := err == nil; seen != (propagation != corev1.MountPropagationNone) {
				t.Errorf("a later mount is seen: %v", seen)
			}
			if err := w.Remove(pod.UID); err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{file, filepath.Join(later, "f")} {
				if _, err := os.Stat(f); err != nil {
					t.Errorf("unmounted from the machine: %v", err)
				}
			}
		})
	}
}

// TestRemoveEntersNoMount: a privileged container mounted the host's file system in its volume, with
// propagation. Remove does not delete files in this mount.
func TestRemoveEntersNoMount(t *testing.T) {
	w := mounting(t)
	base := filepath.Join(w.root, "../machine")
	file := sharedMount(t, base)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	for _, name := range []string{"a", "a b"} {
		at := filepath.Join(w.dir(pod, "e"), name)
		must(t, os.Mkdir(at, 0o755), unix.Mount(base, at, "", unix.MS_BIND|unix.MS_REC, ""), unix.Mount(base, at, "", unix.MS_BIND|unix.MS_REC, ""))
	}
	if err := w.Remove(pod.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the machine lost %v", err)
	}
	// Without an earlier unmount, as for a mount that appears later, removeTree fails and the files stay.
	must(t, os.MkdirAll(filepath.Join(w.pods, "u2/volumes/e"), 0o755))
	at := filepath.Join(w.pods, "u2/volumes/e")
	must(t, unix.Mount(base, at, "", unix.MS_BIND|unix.MS_REC, ""))
	if err := removeTree(w.pods, "u2"); err == nil {
		t.Error("a tree with a mount was removed")
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the machine lost %v", err)
	}
	must(t, w.Remove("u2"))
}

func TestAnUnprivilegedRuntimeRemovesWhatItsContainersLocked(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	dir := filepath.Join(w.dir(pod, "e"), "locked")
	must(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "f"), nil, 0o400), os.Chmod(dir, 0o000))
	must(t, w.Remove(pod.UID))
}

func TestEmptyDirMode(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		v := emptyDir("e", corev1.StorageMediumMemory, "1Mi")
		v.EmptyDir.Mode = ptr.To[int32](0o1750)
		pod := podOf("u", v)
		w.setup(pod)
		if got := w.mode(w.dir(pod, "e")); got != os.ModeDir|os.ModeSticky|0o750 {
			t.Errorf("mode %v", got)
		}
	})
}

// TestSecurityI4DeepVolumesAreRemoved: a volume is removed although its directories are nested deeper than the limit of open files.
func TestSecurityI4DeepVolumesAreRemoved(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	fd, err := unix.Open(w.dir(pod, "e"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range 21_000 {
		must(t, unix.Mkdirat(fd, "d", 0o700))
		below, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		must(t, err, unix.Close(fd))
		fd = below
	}
	must(t, unix.Close(fd))
	if err := w.Remove(pod.UID); err != nil {
		t.Errorf("%.200s", err.Error())
	}
	if left, err := w.Pods(); err != nil || len(left) != 0 {
		t.Errorf("left: %d directories, %v", len(left), err)
	}
}
