// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLogOnAFullDiskHasWholeLines checks that lines without room are lost as a whole, and that the next line is
// complete again.
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
	l, err := openLog(dir, filepath.Join(dir, "log"))
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

// TestSecurityJ9ALogIsNoLink checks that this process writes nowhere else if a pod may write to the directory of
// logs, from the start or after a rotation.
func TestSecurityJ9ALogIsNoLink(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	dir := filepath.Join(base, "pod")
	log, precious := filepath.Join(dir, "main", "0.log"), filepath.Join(outside, "0.log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), os.WriteFile(precious, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	l.write("stdout", []byte("good\n"), time.Now())
	for name, change := range map[string]func(path string) error{
		"a link":                func(path string) error { return os.Symlink(outside, path) },
		"a link within the pod": func(path string) error { return os.Symlink(filepath.Base(path)+".was", path) },
		"a pipe":                func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		for _, path := range []string{log, filepath.Dir(log), dir} {
			target := path
			if err := os.Rename(target, target+".was"); err != nil {
				t.Fatal(err)
			}
			if err := change(target); err != nil {
				t.Fatal(err)
			}
			if err := l.reopenFile(); err == nil {
				t.Errorf("%s at %s: it was opened", name, path)
			}
			l.write("stdout", []byte("later\n"), time.Now())
			if _, err := openLog(dir, log); err == nil {
				t.Errorf("%s at %s from the start: it was opened", name, path)
			}
			if err := errors.Join(os.Remove(target), os.Rename(target+".was", target)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if data, err := os.ReadFile(precious); err != nil || len(data) > 0 {
		t.Errorf("a file of the machine has %q, %v", data, err)
	}
	if data, err := os.ReadFile(log); err != nil || strings.Count(string(data), "later") != 9 {
		t.Errorf("the log has %q, %v", data, err)
	}
}
