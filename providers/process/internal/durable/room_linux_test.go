// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheLastContentHasRoomOnAFullDisk checks that a last write succeeds on a disk without room for other data.
func TestTheLastContentHasRoomOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a disk of the test's own needs the rights of root")
	}
	for what, options := range map[string]string{"bytes": "size=64k", "files": "nr_inodes=16"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := unix.Mount("disk", dir, "tmpfs", 0, options+",mode=700"); err != nil {
				t.Skipf("mount a small disk: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			path := filepath.Join(dir, "state.json")
			if err := WriteJSON(path, "first"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(KeepRoom(path), KeepRoomToBegin(path)); err != nil {
				t.Fatal(err)
			}
			for {
				if f, err := os.CreateTemp(dir, "fill"); err != nil {
					break
				} else if _, err := f.Write(make([]byte, 4<<10)); err != nil {
					f.Close()
					break
				} else if err := f.Close(); err != nil {
					break
				}
			}
			if err := WriteJSON(path, "second"); !Full(err) {
				t.Errorf("a write on a full disk: got %v", err)
			}
			var got string
			if err := WriteBeginJSON(path, "begin"); err != nil {
				t.Fatal(err)
			}
			if err := ReadJSON(path, &got); err != nil || got != "begin" {
				t.Errorf("got %q, %v", got, err)
			}
			if _, err := os.Stat(path + beginSuffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the room for the beginning is kept: %v", err)
			}
			if err := WriteLastJSON(path, "last"); err != nil {
				t.Fatal(err)
			}
			if err := ReadJSON(path, &got); err != nil || got != "last" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
