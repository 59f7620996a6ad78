// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestContainerThatIsBeingRemovedHasEnded checks that a container does not look like a new one during its
// removal, when its state file may already be gone. Otherwise its exit code would be lost, and a succeeded pod
// would have a lost container.
func TestContainerThatIsBeingRemovedHasEnded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a mount keeps the directory from going, which needs root")
	}
	r, _, c := onHost(t)
	if err := r.StartContainer(t.Context(), c.id); err != nil {
		t.Fatal(err)
	}
	if err := r.StopContainer(t.Context(), c.id, 60); err != nil {
		t.Fatal(err)
	}
	ended, err := r.ContainerStatus(t.Context(), c.id, false)
	if err != nil || ended.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Fatal(ended, err)
	}
	busy := filepath.Join(c.dir, "zz")
	if err := os.Mkdir(busy, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", busy, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(busy, syscall.MNT_DETACH) })
	if err := r.RemoveContainer(t.Context(), c.id); err == nil {
		t.Fatal("a directory went with a file system in it")
	}
	if _, err := os.Stat(filepath.Join(c.dir, "state.json")); !os.IsNotExist(err) {
		t.Fatalf("the file of states is there (%v): this test shows nothing", err)
	}
	if got, err := r.ContainerStatus(t.Context(), c.id, false); err != nil || got.GetStatus().String() != ended.GetStatus().String() {
		t.Errorf("while it is removed: got %v, %v, want %v", got.GetStatus(), err, ended.GetStatus())
	}
	list, err := r.ListContainers(t.Context(), &runtimeapi.ContainerFilter{Id: c.id})
	if err != nil || len(list) != 1 || list[0].GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("while it is removed the list has %v, %v", list, err)
	}
	if err := syscall.Unmount(busy, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.RemoveContainer(t.Context(), c.id); err != nil {
		t.Error(err)
	}
}
