// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// mountsOf returns the mounts of the container of a pod.
func (w *world) mountsOf(pod *corev1.Pod) []*runtimeapi.Mount {
	w.t.Helper()
	mounts, err := w.Mounts(w.t.Context(), pod, &pod.Spec.Containers[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return mounts
}

func TestMountsSayWhatTheContainerWants(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RecursiveReadOnly = func(*corev1.Pod) bool { return true } })
	w.maps["m"] = &corev1.ConfigMap{}
	pod := podOf("u", emptyDir("e", "", ""), configMapVolume("m", "m"))
	w.setup(pod)
	wish := pod.Spec.Containers[0].VolumeMounts
	wish[0].MountPath, wish[0].MountPropagation, wish[0].BindMountOptions = "data", ptr.To(corev1.MountPropagationBidirectional), []string{"noexec"}
	got := w.mountsOf(pod)
	if e := got[0]; e.ContainerPath != "/data" || e.HostPath != w.dir(pod, "e") || e.Readonly || !e.SelinuxRelabel ||
		e.Propagation != runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL || len(e.MountOptions) != 1 {
		t.Errorf("emptyDir: %v", e)
	}
	if m := got[1]; m.ContainerPath != "/m" || !m.Readonly || m.Propagation != 0 {
		t.Errorf("configMap: %v", m)
	}
	for want, change := range map[string]func(*corev1.VolumeMount){
		`cannot find volume "no" to mount into container "c"`: func(m *corev1.VolumeMount) { m.Name = "no" },
		`invalid MountPropagation mode: "x"`:                  func(m *corev1.VolumeMount) { m.MountPropagation = ptr.To(corev1.MountPropagationMode("x")) },
		`failed to resolve recursive read-only mode: volume "e" requested recursive read-only mode, but it is not read-only`: func(m *corev1.VolumeMount) {
			m.RecursiveReadOnly = ptr.To(corev1.RecursiveReadOnlyEnabled)
		},
		`failed to resolve recursive read-only mode: volume "e" requested recursive read-only mode, but it is not compatible with propagation "Bidirectional"`: func(m *corev1.VolumeMount) {
			m.RecursiveReadOnly, m.ReadOnly, m.MountPropagation = ptr.To(corev1.RecursiveReadOnlyEnabled), true, ptr.To(corev1.MountPropagationBidirectional)
		},
		"error SubPath `/tmp` must not be an absolute path":       func(m *corev1.VolumeMount) { m.SubPathExpr = "$(ABS)" },
		"unable to provision SubPath `..`: must not contain '..'": func(m *corev1.VolumeMount) { m.SubPathExpr = "$(UP)" },
		"missing value for ALSO, MISSING":                         func(m *corev1.VolumeMount) { m.SubPathExpr = "$(MISSING)/$(ALSO)/$(UP)" },
		"missing value for EMPTY":                                 func(m *corev1.VolumeMount) { m.SubPathExpr = "$(EMPTY)" },
	} {
		pod := pod.DeepCopy()
		c := &pod.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "ABS", Value: "/tmp"}, {Name: "UP", Value: ".."}, {Name: "EMPTY"}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "e", MountPath: "/e"}}
		change(&c.VolumeMounts[0])
		if _, err := w.Mounts(t.Context(), pod, c); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	wish[0] = corev1.VolumeMount{Name: "e", MountPath: "/e", ReadOnly: true, RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyIfPossible)}
	if got := w.mountsOf(pod); !got[0].RecursiveReadOnly || !got[0].Readonly {
		t.Errorf("recursive read-only: %v", got[0])
	}
	if _, err := w.Mounts(t.Context(), podOf("other", emptyDir("e", "", "")), &pod.Spec.Containers[0]); err == nil {
		t.Error("a volume that is not set up was mounted")
	}
}

func TestImageVolumes(t *testing.T) {
	image := &runtimeapi.Mount{Image: &runtimeapi.ImageSpec{Image: "sha256:1"}}
	w := newWorld(t, func(c *Config) {
		c.Image = func(context.Context, *corev1.Pod, *corev1.Volume) (*runtimeapi.Mount, error) {
			if image == nil {
				return nil, errors.New("ErrImagePull: no")
			}
			return image, nil
		}
	})
	pod := podOf("u", corev1.Volume{Name: "i", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r"}}})
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
	w.setup(pod)
	if m := w.mountsOf(pod)[0]; m.Image.GetImage() != "sha256:1" || m.ImageSubPath != "sub" || !m.Readonly || m.HostPath != "" {
		t.Errorf("mount by the runtime: %v", m)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	image = &runtimeapi.Mount{HostPath: dir}
	if m := w.mountsOf(pod)[0]; at(m) != filepath.Join(dir, "sub") || !m.Readonly {
		t.Errorf("mount of files: %v", m)
	}
	image = nil
	if _, err := w.Mounts(t.Context(), pod, &pod.Spec.Containers[0]); err == nil || !strings.HasPrefix(err.Error(), "ErrImagePull") {
		t.Errorf("pull that fails: %v", err)
	}
}

// both runs a test with Volumes that mount everything, and with Volumes that can mount nothing.
func both(t *testing.T, test func(*testing.T, *world), change ...func(*Config)) {
	t.Run("mounting", func(t *testing.T) { test(t, mounting(t, change...)) })
	t.Run("not mounting", func(t *testing.T) { test(t, newWorld(t, change...)) })
}

func TestSubPaths(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"k": "1"}}
		pod := podOf("u", emptyDir("e", "", ""), configMapVolume("m", "m"))
		c := &pod.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "POD", Value: "web"}}
		c.VolumeMounts[0].SubPathExpr, c.VolumeMounts[1].SubPath = "logs/$(POD)", "k"
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To(int64(os.Getegid()))}
		w.setup(pod)
		for range 2 { // a container starts, and restarts
			got := w.mountsOf(pod)
			if err := os.WriteFile(filepath.Join(at(got[0]), "f"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if text := w.read(w.dir(pod, "e"), "logs/web/f"); text != "x" {
				t.Errorf("what is written is not in the volume: %q", text)
			}
			if text := w.read(at(got[1])); text != "1" {
				t.Errorf("a file of a configMap: %q", text)
			}
		}
		// The directory has the mode and the group of the volume. Otherwise, the volume's user would have no access.
		if got := w.mode(w.dir(pod, "e"), "logs/web"); got != os.ModeDir|os.ModeSetgid|0o777 {
			t.Errorf("mode %v", got)
		}
		// The next start of the container sees the new content.
		w.maps["m"] = &corev1.ConfigMap{Data: map[string]string{"k": "2"}}
		if _, err := w.Refresh(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		if text := w.read(at(w.mountsOf(pod)[1])); text != "2" {
			t.Errorf("after an update: %q", text)
		}
		if err := w.Remove(pod.UID); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSubPathsLeadNowhereElse: a container that makes links in its volume cannot lead a subPath out of the
// volume.
func TestSubPathsLeadNowhereElse(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		outside := t.TempDir()
		for name, link := range map[string]string{
			"an absolute link": outside, "a link up": "../../../../..", "a link to a link": "absolute/..", "itself": "sub",
			"a link of the kernel": "/proc/self/root" + outside,
		} {
			for _, sub := range []string{"sub", "sub/deeper", "dir/sub/x"} {
				pod := podOf("u", emptyDir("e", "", ""))
				pod.Spec.Containers[0].VolumeMounts[0].SubPath = sub
				w.setup(pod)
				dir := w.dir(pod, "e")
				if err := errors.Join(os.MkdirAll(filepath.Join(dir, "dir"), 0o777), os.Symlink(outside, filepath.Join(dir, "absolute")),
					os.Symlink(link, filepath.Join(dir, "sub")), os.Symlink(link, filepath.Join(dir, "dir/sub"))); err != nil {
					t.Fatal(err)
				}
				mounts, err := w.Mounts(t.Context(), pod, &pod.Spec.Containers[0])
				if err == nil || !strings.HasSuffix(err.Error(), `for volumeMount "e" of container "c"`) || strings.Contains(err.Error(), outside) {
					t.Errorf("%s by %s: %v, %v", name, sub, mounts, err)
				}
				if err := w.Remove(pod.UID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
			t.Errorf("outside: %v, %v", entries, err)
		}
	})
}

func TestLinksWithinAVolumeAreFine(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		pod := podOf("u", emptyDir("e", "", ""))
		pod.Spec.Containers[0].VolumeMounts[0].SubPath = "link"
		w.setup(pod)
		dir := w.dir(pod, "e")
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o777), os.WriteFile(filepath.Join(dir, "a/f"), []byte("x"), 0o600),
			os.Symlink("a/b", filepath.Join(dir, "l")), os.Symlink("l/../f", filepath.Join(dir, "link"))); err != nil {
			t.Fatal(err)
		}
		if got := w.read(at(w.mountsOf(pod)[0])); got != "x" {
			t.Errorf("got %q", got)
		}
	})
}

// TestAChangeAfterTheCheckDoesNotMatter: the runtime mounts a path of this process, which refers to the checked directory.
func TestAChangeAfterTheCheckDoesNotMatter(t *testing.T) {
	w := mounting(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pod := podOf("u", emptyDir("e", "", ""))
	pod.Spec.Containers[0].VolumeMounts[0].SubPath = "sub"
	w.setup(pod)
	path := at(w.mountsOf(pod)[0])
	sub := filepath.Join(w.dir(pod, "e"), "sub")
	if err := errors.Join(os.Rename(sub, sub+"2"), os.Symlink(outside, sub)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "precious")); err == nil || strings.HasPrefix(path, w.dir(pod, "e")) {
		t.Errorf("the runtime would mount %s", path)
	}
}

func TestAPipeIsNotWaitedFor(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		pod := podOf("u", emptyDir("e", "", ""))
		pod.Spec.Containers[0].VolumeMounts[0].SubPath = "pipe"
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "e", Path: "pipe", Key: "X"}}}}
		w.setup(pod)
		makePipe(t, filepath.Join(w.dir(pod, "e"), "pipe"))
		if info, err := os.Stat(at(w.mountsOf(pod)[0])); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("%v, %v", info, err)
		}
		if _, err := w.EnvFiles(pod, "c"); err == nil {
			t.Error("variables were read from a pipe")
		}
	})
}

func TestEnvFiles(t *testing.T) {
	w := newWorld(t)
	pod := podOf("u", emptyDir("e", "", ""))
	w.setup(pod)
	text := "# comment\n\n  A='one $(B)' # more\nB='two\nlines'\nC= 'x'\nD='d'\n"
	if err := errors.Join(os.WriteFile(filepath.Join(w.dir(pod, "e"), "env"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(w.dir(pod, "e"), "bad"), []byte("A=unquoted\n"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(w.dir(pod, "e"), "out"))); err != nil {
		t.Fatal(err)
	}
	ref := func(volume, path, key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: "V_" + key, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: volume, Path: path, Key: key, Optional: &optional}}}
	}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{ref("e", "env", "A", false), ref("e", "env", "B", false), ref("e", "env", "C", true), ref("e", "env", "no", true), {Name: "L", Value: "l"}}
	got, err := w.EnvFiles(pod, "c")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range got.Spec.Containers[0].Env {
		all = append(all, e.Name+"="+e.Value)
	}
	if text := strings.Join(all, "|"); text != "V_A=one $$(B)|V_B=two\nlines|L=l" || pod.Spec.Containers[0].Env[0].ValueFrom == nil {
		t.Errorf("environment: %s", text)
	}
	for want, e := range map[string]corev1.EnvVar{
		`environment variable key "no" not found in file "env"`: ref("e", "env", "no", false),
		`cannot find the volume "x" referenced by FileKeyRef`:   ref("x", "env", "A", false),
		"couldn't parse env file":                               ref("e", "bad", "A", false),
	} {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{e}
		if _, err := w.EnvFiles(pod, "c"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{ref("e", "out", "root", true)}
	if _, err := w.EnvFiles(pod, "c"); err == nil {
		t.Error("a file of the machine was read")
	}
}

// TestSecurityJ9WhatContainersWriteIsFoundOnce: a container replaces a directory by a link after the check of this directory. The runtime gets a
// directory that no container can write to, and a path below it that it opens once. If this is not possible, the mount is refused.
func TestSecurityJ9WhatContainersWriteIsFoundOnce(t *testing.T) {
	given := func(c *Config) { c.HostPaths = []string{filepath.Join(c.Root, "../given")} }
	for name, test := range map[string]struct {
		w    *world
		held bool
	}{
		"this process mounts":     {mounting(t, given), true},
		"the runtime opens":       {newWorld(t, given), true},
		"nobody opens it at once": {newWorld(t, given, func(c *Config) { c.SubPaths = false }), false},
	} {
		t.Run(name, func(t *testing.T) {
			w, outside := test.w, t.TempDir()
			base := w.cfg.HostPaths[0]
			if err := os.MkdirAll(filepath.Join(base, "dir/sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			pod := podOf("u", emptyDir("e", "", ""), emptyDir("m", corev1.StorageMediumMemory, ""), hostPathVolume("h", filepath.Join(base, "dir"), ""), hostPathVolume("s", filepath.Join(base, "dir"), ""))
			c := &pod.Spec.Containers[0]
			c.Env = []corev1.EnvVar{{Name: "POD", Value: "sub"}}
			c.VolumeMounts[0].SubPath, c.VolumeMounts[1].SubPathExpr, c.VolumeMounts[3].SubPath = "sub", "$(POD)", "sub"
			w.setup(pod)
			for i := range c.VolumeMounts {
				pod := pod.DeepCopy()
				c := &pod.Spec.Containers[0]
				c.VolumeMounts = c.VolumeMounts[i : i+1]
				mounts, err := w.Mounts(t.Context(), pod, c)
				if !test.held {
					if err == nil || !strings.Contains(err.Error(), "CAP_SYS_ADMIN") {
						t.Errorf("mount %d: %v, %v", i, mounts, err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				m := mounts[0]
				written := []string{filepath.Join(w.dir(pod, "e"), "sub"), filepath.Join(w.dir(pod, "m"), "sub"), filepath.Join(base, "dir"), filepath.Join(base, "dir/sub")}[i]
				if m.ImageSubPath != "" && !w.mounts {
					if want := []string{"sub", "sub", "dir", "dir//sub"}[i]; m.ImageSubPath != want || isInside(written, m.HostPath) {
						t.Errorf("mount %d: %v, want the way %s", i, m, want)
					}
					continue
				}
				// The runtime mounts the directory that was opened.
				if err := errors.Join(os.WriteFile(filepath.Join(written, "mark"), nil, 0o600), os.Rename(written, written+".was"), os.Symlink(outside, written)); err != nil {
					t.Fatal(err)
				}
				if entries, err := os.ReadDir(m.HostPath); err != nil || len(entries) == 0 || m.ImageSubPath != "" {
					t.Errorf("mount %d: %v has %v, %v", i, m, entries, err)
				}
				if err := errors.Join(os.Remove(written), os.Rename(written+".was", written)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestSecurityJ9ADirectoryThatIsGivenTwiceIsFoundInTheOuterOne: one allowed host path is inside another. A container with the outer directory can
// replace the path to the inner directory by a link; the node does not follow this link.
func TestSecurityJ9ADirectoryThatIsGivenTwiceIsFoundInTheOuterOne(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		outer, inner, outside := w.cfg.HostPaths[0], w.cfg.HostPaths[1], t.TempDir()
		if err := errors.Join(os.MkdirAll(outer, 0o755), os.Mkdir(filepath.Join(outside, "dir"), 0o755), os.Symlink(outside, filepath.Dir(inner))); err != nil {
			t.Fatal(err)
		}
		pod := podOf("u", hostPathVolume("h", inner, ""))
		if mounts, err := w.Mounts(t.Context(), pod, &pod.Spec.Containers[0]); err == nil {
			t.Errorf("a link of a container leads to %v", mounts)
		}
	}, func(c *Config) {
		c.HostPaths = []string{filepath.Join(c.Root, "../given"), filepath.Join(c.Root, "../given/a/dir")}
	})
}
