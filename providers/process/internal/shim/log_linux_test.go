// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLogOnAFullDiskHasWholeLines: what there was no room for is lost, and the next line is whole again.
func TestLogOnAFullDiskHasWholeLines(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a disk of the test's own needs the rights of root")
	}
	dir := t.TempDir()
	if err := unix.Mount("disk", dir, "tmpfs", 0, "size=16k,mode=700"); err != nil {
		t.Skipf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 8<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 3000) + "\n")
	for range 5 {
		l.write("stdout", line, time.Now())
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	l.write("stdout", line, time.Now())
	data, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, line); n != 3 || bytes.Count(data, []byte("stdout F ")) != 3 || len(data)%3 != 0 {
		t.Errorf("the log has %d whole lines in %d bytes:\n%.200s", n, len(data), data)
	}
}
