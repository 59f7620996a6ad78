// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// onHost returns a runtime for programs of the machine, with a sandbox and a container that was not started.
func onHost(t *testing.T) (r *Runtime, sandbox string, c *container) {
	t.Helper()
	r, err := Open(t.Context(), Config{StateDir: t.TempDir(), Isolation: IsolationNone}, "n1", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	sandbox, err = r.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "u1"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.RemovePodSandbox(context.Background(), sandbox); err != nil {
			t.Error(err)
		}
	})
	id, err := r.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "host"}, Command: []string{"sleep", "600"},
	}, nil)
	if err == nil {
		c, err = r.findContainer(id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, sandbox, c
}

// TestWhatEndsAContainerWaitsForItsStart checks that a container that is stopped or removed during its start
// does not run afterwards.
func TestWhatEndsAContainerWaitsForItsStart(t *testing.T) {
	for name, end := range map[string]func(r *Runtime, sandbox, id string) error{
		"RemoveContainer":  func(r *Runtime, _, id string) error { return r.RemoveContainer(context.Background(), id) },
		"StopContainer":    func(r *Runtime, _, id string) error { return r.StopContainer(context.Background(), id, 0) },
		"RemovePodSandbox": func(r *Runtime, sandbox, _ string) error { return r.RemovePodSandbox(context.Background(), sandbox) },
	} {
		t.Run(name, func(t *testing.T) {
			r, sandbox, c := onHost(t)
			c.working.Lock()
			ended := make(chan error)
			go func() { ended <- end(r, sandbox, c.id) }()
			err := r.startProcess(t.Context(), c)
			state, read := shim.ReadState(c.dir)
			c.working.Unlock()
			if err != nil && status.Code(err) != codes.FailedPrecondition || read != nil {
				t.Fatal(err, read)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if state.Init.Alive() {
				t.Errorf("process %v runs", state.Init)
			}
		})
	}
}

// TestStartThatComesTooLate checks that a start after the end of the container or of its sandbox starts nothing
// and leaves nothing.
func TestStartThatComesTooLate(t *testing.T) {
	r, sandbox, c := onHost(t)
	if err := r.StopPodSandbox(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	if err := r.StartContainer(t.Context(), c.id); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("in a stopped sandbox: got %v", err)
	}
	if state, err := shim.ReadState(c.dir); err != nil || state.Started() {
		t.Errorf("state: got %+v, %v", state, err)
	}
	if err := r.RemoveContainer(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	c.working.Lock()
	defer c.working.Unlock()
	if err := r.startProcess(t.Context(), c); status.Code(err) != codes.NotFound {
		t.Errorf("removed: got %v", err)
	}
	if _, err := os.Lstat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: got %v", err)
	}
}

// TestStopThatFailedOnceIsRecorded checks that the record of a sandbox has the request to stop, so that the next
// daemon does not report the sandbox as ready.
func TestStopThatFailedOnceIsRecorded(t *testing.T) {
	r, sandbox, c := onHost(t)
	if err := r.StartContainer(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.StopPodSandbox(cut, sandbox); !errors.Is(err, context.Canceled) {
		t.Fatalf("a stop that nobody waits for: got %v", err)
	}
	if err := r.StopPodSandbox(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	var record sandboxRecord
	s, err := r.findSandbox(sandbox)
	if err == nil {
		err = loadRecord(s.dir, &record, &runtimeapi.PodSandboxConfig{})
	}
	if err != nil || !record.Stopped {
		t.Errorf("on disk: got %+v, %v", record, err)
	}
}
