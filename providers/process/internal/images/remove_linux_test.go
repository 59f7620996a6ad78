// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// nest makes directories inside each other below dir. Like in a container, the length of their paths has no
// bound.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range depth {
		if err != nil {
			break
		}
		if err = unix.Mkdirat(fd, "d", 0o700); err != nil {
			break
		}
		below, openErr := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		unix.Close(fd)
		fd, err = below, openErr
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
}

// TestSecurityI4DeepTreesAreRemoved removes a tree that is deeper than the number of descriptors of this
// process, and whose paths are longer than the kernel accepts.
func TestSecurityI4DeepTreesAreRemoved(t *testing.T) {
	const depth = 21_000
	top := t.TempDir()
	dir := filepath.Join(top, "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	nest(t, dir, depth)
	if err := RemoveTree(dir); err != nil {
		t.Errorf("%.200s", err.Error())
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 0 {
		t.Errorf("left: %d entries, %v", len(left), err)
	}
}

// TestSecurityI4RemovalFollowsNoLink checks that a removal follows no link, neither on the path of the tree nor
// inside it.
func TestSecurityI4RemovalFollowsNoLink(t *testing.T) {
	top := t.TempDir()
	victim, tree := filepath.Join(top, "victim"), filepath.Join(top, "tree")
	for _, dir := range []string{victim, tree} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(victim, "kept")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.Symlink(victim, filepath.Join(tree, "link")),
		os.Symlink(kept, filepath.Join(tree, "file")), os.Symlink(victim, filepath.Join(top, "itself"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(RemoveTree(tree), RemoveTree(filepath.Join(top, "itself")), RemoveTree(filepath.Join(top, "absent"))); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what links lead to: %v", err)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v; want the victim only", left, err)
	}
}

// TestWideTreesAreRemoved removes a directory that has more names than one read returns.
func TestWideTreesAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	for i := range 3 {
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		for j := range 2*batch + 1 {
			if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(j)), nil, 0o400); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := RemoveTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it is gone", err)
	}
}

// TestWhatCannotBeRemovedKeepsNothingElse checks that a mount, with the directories above it, is all that stays.
// The next attempt removes the rest.
func TestWhatCannotBeRemovedKeepsNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	at := filepath.Join(dir, "with", "mount")
	for _, d := range []string{at, filepath.Join(dir, "a", "b"), filepath.Join(dir, "z")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no mount can be made here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(at, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveTree(dir); err == nil {
		t.Error("got no error for a tree with a mount")
	}
	if _, err := os.Stat(filepath.Join(at, "kept")); err != nil {
		t.Errorf("what is mounted: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v; want what has the mount only", left, err)
	}
	if err := errors.Join(unix.Unmount(at, 0), RemoveTree(dir)); err != nil {
		t.Error(err)
	}
}
