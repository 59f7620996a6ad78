// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestHostPathTypes(t *testing.T) {
	base := t.TempDir()
	w := newWorld(t, func(c *Config) { c.HostPaths = []string{base, "/dev/null"} })
	if err := errors.Join(os.Mkdir(filepath.Join(base, "dir"), 0o700), os.WriteFile(filepath.Join(base, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(base, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	is := " is not a "
	for _, tt := range []struct {
		path string
		kind corev1.HostPathType
		want string
	}{
		{"dir", corev1.HostPathUnset, ""},
		{"dir", corev1.HostPathDirectory, ""},
		{"file", corev1.HostPathFile, ""},
		{"socket", corev1.HostPathSocket, ""},
		{"/dev/null", corev1.HostPathCharDev, ""},
		{"new/deep", corev1.HostPathDirectoryOrCreate, ""},
		{"new-file", corev1.HostPathFileOrCreate, ""},
		{"any/deep", corev1.HostPathUnset, ""},
		{"file", corev1.HostPathDirectory, "hostPath type check failed: %s" + is + "directory, it's a File"},
		{"file", corev1.HostPathDirectoryOrCreate, "hostPath type check failed: %s" + is + "directory, it's a File"},
		{"dir", corev1.HostPathFile, "hostPath type check failed: %s" + is + "file, it's a Directory"},
		{"dir", corev1.HostPathSocket, "hostPath type check failed: %s" + is + "socket file, it's a Directory"},
		{"socket", corev1.HostPathCharDev, "hostPath type check failed: %s" + is + "character device, it's a Socket"},
		{"/dev/null", corev1.HostPathBlockDev, "hostPath type check failed: %s" + is + "block device, it's a CharDevice"},
		{"no", corev1.HostPathDirectory, "hostPath type check failed, %s" + is + "directory, unable to determine its type: path \"%s\" does not exist"},
		{"dir", "Other", "Other is an invalid volume type"},
	} {
		path := tt.path
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		want := strings.ReplaceAll(tt.want, "%s", path)
		_, err := w.Setup(t.Context(), podOf("u", hostPathVolume("h", path, tt.kind)))
		switch {
		case want == "" && err != nil, want != "" && err == nil:
			t.Errorf("%s as %q: %v, want %q", path, tt.kind, err, want)
		case err != nil && err.Error() != `MountVolume.SetUp failed for volume "h" : `+want:
			t.Errorf("%s as %q:\n got %v\nwant %s", path, tt.kind, err, want)
		}
	}
	if !w.mode(base, "new/deep").IsDir() || !w.mode(base, "any/deep").IsDir() || !w.mode(base, "new-file").IsRegular() {
		t.Error("what may be made was not")
	}
}

func TestHostPathsOutsideAreRefused(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		base, outside := w.cfg.HostPaths[0], t.TempDir()
		if err := errors.Join(os.MkdirAll(base, 0o755), os.Symlink(outside, filepath.Join(base, "link")), os.Symlink("nowhere", filepath.Join(base, "dangling")),
			os.Mkdir(base+"-sibling", 0o755)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{outside, base + "/../x", base + "-sibling", "relative", "/", filepath.Join(base, "link"), filepath.Join(base, "link/new"), filepath.Join(base, "dangling/x")} {
			pod := podOf("u", hostPathVolume("h", path, corev1.HostPathDirectoryOrCreate))
			if _, err := w.Setup(t.Context(), pod); err == nil {
				t.Errorf("%s was set up", path)
			}
			if m, err := w.Mounts(t.Context(), pod, &pod.Spec.Containers[0]); err == nil {
				t.Errorf("%s is mounted: %v", path, m)
			}
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
			t.Errorf("outside: %v, %v", entries, err)
		}
	}, func(c *Config) { c.HostPaths = []string{filepath.Join(c.Root, "../given")} })
}

func TestHostPathIsMounted(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		base := w.cfg.HostPaths[0]
		if err := errors.Join(os.MkdirAll(filepath.Join(base, "data/sub"), 0o755), os.WriteFile(filepath.Join(base, "data/sub/f"), []byte("x"), 0o600),
			os.Symlink("data", filepath.Join(base, "link"))); err != nil {
			t.Fatal(err)
		}
		pod := podOf("u", hostPathVolume("h", filepath.Join(base, "link"), corev1.HostPathDirectory))
		m := &pod.Spec.Containers[0].VolumeMounts
		*m = append(*m, corev1.VolumeMount{Name: "h", MountPath: "/sub", SubPath: "sub"}, corev1.VolumeMount{Name: "h", MountPath: "/f", SubPath: "sub/f"})
		w.setup(pod)
		got := w.mountsOf(pod)
		if text := w.read(at(got[0]), "sub/f") + w.read(at(got[1]), "f") + w.read(at(got[2])); text != "xxx" {
			t.Errorf("files: %q by %v", text, got)
		}
		if err := w.Remove(pod.UID); err != nil {
			t.Fatal(err)
		}
		if text := w.read(base, "data/sub/f"); text != "x" {
			t.Errorf("after the pod: %q", text)
		}
	}, func(c *Config) { c.HostPaths = []string{filepath.Join(c.Root, "../given")} })
}

func TestAllOfTheMachineIsPassedOn(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.HostPaths = []string{"/"} })
	dir := t.TempDir()
	pod := podOf("u", hostPathVolume("h", dir, ""))
	w.setup(pod)
	if got := at(w.mountsOf(pod)[0]); got != dir {
		t.Errorf("%s, want %s", got, dir)
	}
}

func TestRemoveFollowsNothing(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
		pod := podOf("u", emptyDir("e", "", ""), secretVolume("s", "s"), emptyDir("m", corev1.StorageMediumMemory, ""))
		w.setup(pod)
		dir := w.dir(pod, "e")
		deep := openRoot(t, dir)
		for range 300 {
			if err := deep.Mkdir("d", 0o755); err != nil {
				t.Fatal(err)
			}
			next, err := deep.OpenRoot("d")
			if err != nil {
				t.Fatal(err)
			}
			deep.Close()
			deep = next
		}
		deep.Close()
		if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "locked"), 0o000),
			os.Symlink(outside, filepath.Join(w.pods, "linked"))); err != nil {
			t.Fatal(err)
		}
		for _, uid := range []types.UID{"u", "u", "linked", "never-there"} {
			if err := w.Remove(uid); err != nil {
				t.Errorf("%s: %v", uid, err)
			}
		}
		for _, uid := range []types.UID{"", ".", "..", "../pods", "a/b"} {
			if err := w.Remove(uid); err == nil {
				t.Errorf("UID %q was removed", uid)
			}
		}
		if uids, err := w.Pods(); err != nil || len(uids) != 0 {
			t.Errorf("left: %v, %v", uids, err)
		}
		if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
			t.Error("what a link led to was removed")
		}
	})
}

// TestSecurityD3RemovedAfterACrash: a new process removes a pod's volumes although it finds only their
// directories.
func TestSecurityD3RemovedAfterACrash(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.secrets["s"] = &corev1.Secret{Data: map[string][]byte{"k": []byte("v")}}
		pod := podOf("u", emptyDir("e", "", ""), secretVolume("s", "s"))
		pod.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
		w.setup(pod)
		w.mountsOf(pod)
		secrets := w.dir(pod, "s")
		// The process ends within Remove, after the removal of the volumes on disk.
		if w.memory != "" {
			if err := os.RemoveAll(filepath.Join(w.pods, "u")); err != nil {
				t.Fatal(err)
			}
		}
		next, err := New(w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		uids, err := next.Pods()
		if err != nil || len(uids) != 1 || uids[0] != "u" {
			t.Fatalf("found %v, %v", uids, err)
		}
		if err := next.Remove("u"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(secrets); err == nil {
			t.Error("secrets are left")
		}
	})
}
