// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMountsAreFoundOnAFullDisk: if a daemon cannot make a directory at its start, it does not conclude that it
// may not mount.
func TestMountsAreFoundOnAFullDisk(t *testing.T) {
	if !canMount(t.TempDir()) {
		t.Skip("this process may not mount")
	}
	if !canMount(filepath.Join(t.TempDir(), "absent")) {
		t.Error("where no directory can be made, it is taken that nothing can be mounted")
	}
	for _, memory := range []string{"/run", "/dev/shm"} {
		if left, err := filepath.Glob(filepath.Join(memory, "vk-mount-probe-*")); err != nil || len(left) > 0 {
			t.Errorf("it leaves %v, %v", left, err)
		}
	}
	if entries, err := os.ReadDir(t.TempDir()); err != nil || len(entries) > 0 {
		t.Errorf("it leaves %v, %v", entries, err)
	}
}
