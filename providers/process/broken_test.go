// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// faults are the faults that a disk error or a power loss can cause in a file.
var faults = map[string]func(path string) error{
	"empty":   func(path string) error { return os.Truncate(path, 0) },
	"cut":     func(path string) error { return os.Truncate(path, 20) },
	"garbage": func(path string) error { return os.WriteFile(path, []byte("\x00\xff\x00\xff"), 0o600) },
	"null":    func(path string) error { return os.WriteFile(path, []byte("null"), 0o600) },
	"nothing": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	"missing": os.Remove,
}

// second creates another sandbox with a container. Both end with the test.
func (w *world) second() (sandbox, container string) {
	w.t.Helper()
	first := w.sandbox
	id, err := w.RunPodSandbox(w.t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"}, Hostname: "pod-2", LogDirectory: w.logs,
	}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.RemovePodSandbox(context.Background(), id); err != nil {
			w.t.Error(err)
		}
	})
	w.sandbox = id
	defer func() { w.sandbox = first }()
	return id, w.run("second", nil, "sleep", "600")
}

// broken applies the fault to the file and reopens the runtime.
func (w *world) broken(path string, fault func(string) error) {
	w.t.Helper()
	if err := errors.Join(w.Close(w.t.Context()), fault(path)); err != nil {
		w.t.Fatal(err)
	}
	r, err := process.Open(w.t.Context(), w.config, "n1", "192.0.2.1")
	if err != nil {
		w.t.Fatalf("the node does not start: %v", err)
	}
	w.Runtime = r
}

// gone checks that no process and no file of a container is left.
func (w *world) gone(id string, state shim.State) {
	w.t.Helper()
	w.until("the end of its processes", func() bool { return !state.Init.Alive() && !state.Shim.Alive() })
	if _, err := os.Lstat(w.container(id)); !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("its directory: got %v, want that it is gone", err)
	}
	list, err := w.ListContainers(w.t.Context(), nil)
	if err != nil || slices.ContainsFunc(list, func(c *runtimeapi.Container) bool { return c.GetId() == id }) {
		w.t.Errorf("containers: got %v, %v, want it not to be among them", list, err)
	}
}

// TestSecurityI5ABrokenRecordCostsItsContainer checks that a container with a broken record is ended, so that no
// process runs unknown to the daemon, and that the other containers are unaffected.
func TestSecurityI5ABrokenRecordCostsItsContainer(t *testing.T) {
	for _, file := range []string{"record.json", "config.json", "state.json"} {
		for name, fault := range faults {
			if file == "state.json" && name != "empty" && name != "cut" && name != "garbage" {
				continue // without a state file, a container counts as not started
			}
			t.Run(file+" is "+name, func(t *testing.T) {
				t.Parallel()
				w := open(t, nil)
				id, other := w.run("main", nil, "sleep", "600"), w.run("other", nil, "sleep", "600")
				state := w.state(id)
				w.broken(filepath.Join(w.container(id), file), fault)
				w.gone(id, state)
				if s := w.status(other); s.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
					t.Errorf("another container of the pod: got %v", s)
				}
				w.run("main", nil, "sleep", "600")
			})
		}
	}
}

// TestSecurityI5ABrokenRecordCostsItsPod checks that the containers of a sandbox with a broken record end with
// the sandbox.
func TestSecurityI5ABrokenRecordCostsItsPod(t *testing.T) {
	for _, file := range []string{"record.json", "config.json"} {
		for name, fault := range faults {
			t.Run(file+" is "+name, func(t *testing.T) {
				t.Parallel()
				w := open(t, nil)
				other := w.run("other", nil, "sleep", "600")
				sandbox, id := w.second()
				state, dir := w.state(id), filepath.Join(w.config.StateDir, "sandboxes", sandbox)
				w.broken(filepath.Join(dir, file), fault)
				w.gone(id, state)
				if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the directory of the sandbox: got %v, want that it is gone", err)
				}
				if s := w.status(other); s.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
					t.Errorf("a container of another pod: got %v", s)
				}
				if list, err := w.ListPodSandbox(t.Context(), nil); err != nil || len(list) != 1 || list[0].GetId() != w.sandbox {
					t.Errorf("sandboxes: got %v, %v", list, err)
				}
			})
		}
	}
}

// TestSecurityI5ABrokenImageIsPulledAgain checks that a broken image is pulled again, and that containers over
// its files are ended, because the files may be incomplete.
func TestSecurityI5ABrokenImageIsPulledAgain(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, nil)
			id := w.run("main", nil, "sleep", "600")
			image, state := w.status(id).GetImageId(), w.state(id)
			_, over := os.Stat(filepath.Join(w.container(id), "upper"))
			w.broken(filepath.Join(w.config.StateDir, "images", image[len("sha256:"):], "image.json"), fault)
			if over == nil {
				w.gone(id, state)
			}
			if s := w.status(w.run("again", nil, "sleep", "600")); s.GetImageId() != image {
				t.Errorf("the image: got %s, want %s", s.GetImageId(), image)
			}
			if entries, err := os.ReadDir(filepath.Join(w.config.StateDir, "images")); err != nil || len(entries) != 1 {
				t.Errorf("images on disk: got %v, %v, want one", entries, err)
			}
		})
	}
}

// TestSecurityI5ARecordOfNobodyIsRemoved checks that unknown files and directories among the records are
// removed.
func TestSecurityI5ARecordOfNobodyIsRemoved(t *testing.T) {
	w := open(t, nil)
	for _, kind := range []string{"containers", "sandboxes"} {
		if err := os.WriteFile(filepath.Join(w.config.StateDir, kind, "odd"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.broken(filepath.Join(w.config.StateDir, "containers", "odder"), func(path string) error { return os.MkdirAll(filepath.Join(path, "a/b"), 0o700) })
	for _, path := range []string{"containers/odd", "containers/odder", "sandboxes/odd"} {
		if _, err := os.Lstat(filepath.Join(w.config.StateDir, path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v, want that it is gone", path, err)
		}
	}
}
