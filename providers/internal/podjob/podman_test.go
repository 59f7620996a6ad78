// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestReference(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"busybox": "docker.io/library/busybox:latest", "team/app:1": "docker.io/team/app:1", "localhost:5000/app": "localhost:5000/app:latest",
		"quay.io/a/b@sha256:" + id: "quay.io/a/b@sha256:" + id, "sha256:" + id: id, id: id, "--help": "docker.io/library/--help:latest", "a b": "", "": "", "docker-archive:/x": "",
	} {
		got, err := fullName(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %q", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestAccounts(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "etc", "passwd"), "broken\nroot:x:0:0::/root:/bin/sh\nweb:x:1234:1235::/home/web:/bin/sh\n")
	write(filepath.Join(dir, "etc", "group"), "web:x:1235:\nmore:x:77:other,web\nbroken:x\n")
	for text, want := range map[string]account{
		"": {home: "/root"}, "web": {1234, 1235, "/home/web", []int{77}}, "1234": {1234, 1235, "/home/web", []int{77}}, "web:more": {1234, 77, "/home/web", []int{77}},
		"9:8": {9, 8, "/", nil}, "9": {9, 0, "/", nil},
	} {
		got, err := accounts{dir}.user(text)
		if err != nil || got.uid != want.uid || got.gid != want.gid || got.home != want.home || !slices.Equal(got.groups, want.groups) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"nobody", "web:nobody"} {
		if got, err := (accounts{dir}).user(text); err == nil {
			t.Errorf("%q: %+v, want no such", text, got)
		}
	}
	write(filepath.Join(outside, "passwd"), "out:x:7:7::/:/bin/sh\n")
	if err := os.Remove(filepath.Join(dir, "etc", "passwd")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "passwd"), filepath.Join(dir, "etc", "passwd")); err != nil {
		t.Fatal(err)
	}
	if got, err := (accounts{dir}).user("out"); err == nil {
		t.Errorf("a file outside of the image was read: %+v", got)
	}
}

// TestPodmanKeepsNothingInTheJob: jobs share its state, and credentials are in a file that only the user can read.
func TestPodmanKeepsNothingInTheJob(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/dev/shm/vk-job-1")
	if env := podmanCommand(t.Context(), "info").Env; len(env) == 0 || slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "XDG_RUNTIME_DIR=") }) {
		t.Error("podman has the directory of the job, or no environment")
	}
	path, err := newPodman(t.TempDir()).authFile("registry.example:5000/a/b:1", &runtimeapi.AuthConfig{Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != `{"auths":{"registry.example:5000":{"auth":"dTpw"}}}` {
		t.Errorf("got %s, %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestSecurityC8ImageIsNoOptionOfPodman: the name of an image is an argument of podman.
func TestSecurityC8ImageIsNoOptionOfPodman(t *testing.T) {
	for _, text := range []string{"-x", "--", "--authfile=registry.example/x", "-v.example/x", "--root=r.example:1/x", "-v:80/x", "--help", "-" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 64)} {
		if ref, err := fullName(text); err == nil && strings.HasPrefix(ref, "-") {
			t.Errorf("image %q: podman gets %q", text, ref)
		}
	}
}
