// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestImagesGoFromAFullDisk checks that removing an image needs no space on the disk.
func TestImagesGoFromAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a disk of the test's own needs the rights of root")
	}
	dir := t.TempDir()
	if err := unix.Mount("images", dir, "tmpfs", 0, "nr_inodes=16,mode=700"); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	image := Image{ID: "sha256:abc"}
	if err := os.Mkdir(s.imagePath(image.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	s.images[image.ID] = &image
	for n := 0; ; n++ {
		if err := os.WriteFile(filepath.Join(s.imagePath(image.ID), fmt.Sprint(n)), nil, 0o600); err != nil {
			break // full
		}
	}
	if err := s.Remove(image.ID); err != nil || s.Has(image.ID) {
		t.Errorf("got %v, and it is listed: %t", err, s.Has(image.ID))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("on the disk there are %v, %v", left, err)
	}
}
