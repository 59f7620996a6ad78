// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBase(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home/u") // where the cache directory is elsewhere
	t.Setenv(HomeVariable, "")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	check := func(flag, want string) {
		t.Helper()
		if got, err := Base(flag); err != nil || got != want {
			t.Errorf("Base(%q): got %q, %v, want %q", flag, got, err, want)
		}
	}
	check("", filepath.Join(cache, "virtual-kubelet", "devcluster"))
	t.Setenv(HomeVariable, "/env")
	check("", "/env")
	check("/flag", "/flag")
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"default": true, "a": true, "two-2": true, strings.Repeat("a", 63): true,
		"": false, "..": false, "a/b": false, "-a": false, "a-": false, "A": false, strings.Repeat("a", 64): false,
	} {
		if _, err := At("/base", name); (err == nil) != ok {
			t.Errorf("At(%q): got %v, want valid %v", name, err, ok)
		}
	}
}

// newCluster returns a cluster's directory, with a record of an earlier process in it.
func newCluster(t *testing.T, base, name string) Dir {
	t.Helper()
	d, err := At(base, name)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := d.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	// The record has the process ID of this test, which is alive. A program that trusts the ID alone would be
	// wrong.
	if err := d.WriteRecord(Record{Server: "https://127.0.0.1:1", Port: 1, PID: os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestStaleRecordIsNoRunningCluster(t *testing.T) {
	d := newCluster(t, t.TempDir(), "c")
	s, err := d.Status()
	if err != nil || s.Phase != Stopped || s.PID != 0 || s.Record.Port != 1 {
		t.Errorf("got %+v, %v, want stopped, with the last record", s, err)
	}
}

func TestList(t *testing.T) {
	base := t.TempDir()
	newCluster(t, base, "two")
	newCluster(t, base, "one")
	if err := os.Mkdir(filepath.Join(base, "not-a-cluster"), 0o700); err != nil {
		t.Fatal(err)
	}
	dirs, err := List(base)
	if err != nil || len(dirs) != 2 || dirs[0].Name != "one" || dirs[1].Name != "two" {
		t.Errorf("got %v, %v, want one and two", dirs, err)
	}
	if dirs, err := List(filepath.Join(base, "nothing")); err != nil || len(dirs) != 0 {
		t.Errorf("no base directory: got %v, %v, want nothing", dirs, err)
	}
}

const (
	holdVariable   = "STATE_TEST_HOLD"
	deleteVariable = "STATE_TEST_DELETE"
)

// TestMain lets this test binary be the other process. It holds a cluster's lock until its standard input ends.
// On demand it deletes the cluster before it releases the lock.
func TestMain(m *testing.M) {
	path := os.Getenv(holdVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	d := Dir{Name: filepath.Base(path), path: path}
	_, err := d.TryLock()
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if os.Getenv(deleteVariable) != "" && d.Delete() != nil {
		os.Exit(1)
	}
	os.Exit(0) // the lock goes with the process
}

// hold starts another process that holds the cluster's lock.
func hold(t *testing.T, d Dir, env ...string) (holder *exec.Cmd, release io.Closer) {
	t.Helper()
	holder = exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(append(os.Environ(), holdVariable+"="+d.path), env...)
	release, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return holder, release
}

func TestHolder(t *testing.T) {
	d := newCluster(t, t.TempDir(), "c")
	holder, release := hold(t, d)
	if s, err := d.Status(); err != nil || s.Phase != Starting || s.PID != holder.Process.Pid {
		t.Errorf("got %+v, %v, want starting with pid %d, because the record is another process's", s, err, holder.Process.Pid)
	}
	if err := d.WriteRecord(Record{PID: holder.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status(); err != nil || s.Phase != Running {
		t.Errorf("got %+v, %v, want running", s, err)
	}
	if _, err := d.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("TryLock: got %v, want ErrLocked", err)
	}

	time.AfterFunc(10*time.Millisecond, func() { _ = release.Close() })
	lock, err := d.WaitLock()
	if err != nil {
		t.Fatalf("WaitLock: %v", err)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestKilledHolder(t *testing.T) {
	d := newCluster(t, t.TempDir(), "c")
	holder, _ := hold(t, d)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed
	if pid, err := d.Holder(); err != nil || pid != 0 {
		t.Errorf("got holder %d, %v, want none", pid, err)
	}
}

func TestHolderDeletesTheCluster(t *testing.T) {
	d := newCluster(t, t.TempDir(), "c")
	_, release := hold(t, d, deleteVariable+"=1")
	time.AfterFunc(10*time.Millisecond, func() { _ = release.Close() })
	if _, err := d.WaitLock(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WaitLock: got %v, want that there is nothing to lock", err)
	}
	if d.Exists() {
		t.Error("waiting for the lock made the cluster again")
	}
}
