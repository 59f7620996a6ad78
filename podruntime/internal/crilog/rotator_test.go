// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// rotation returns a Rotator of one log.
func rotation(r *runtime, d *Dir) *Rotator {
	return &Rotator{
		Dir: d, MaxSize: 100, MaxFiles: 3,
		Running: func(context.Context) ([]Container, error) { return []Container{{ID: "a", Path: r.path}}, nil },
		Reopen:  r.reopen,
	}
}

// listed returns the names of the files of a log, without the log's own name.
func listed(t *testing.T, d *Dir) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(filepath.Join(d.path, livePath)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimPrefix(e.Name(), "0.log"))
	}
	return strings.Join(names, " ")
}

func TestRotator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := logDir(t, nil)
		r := newRuntime(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); rotation(r, d).Run(ctx) }()
		defer func() { cancel(); <-done }()

		r.lines(1)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := listed(t, d); got != "" {
			t.Errorf("a short log was rotated: %q", got)
		}
		for _, want := range []string{
			" .20000101-000020",
			" .20000101-000020.gz .20000101-000030",
			" .20000101-000030.gz .20000101-000040",
		} {
			r.lines(5)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := listed(t, d); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		r.lines(1)
		if got := read(t, d, api.ContainerLogOpts{}); got != numbered(7, 17) {
			t.Errorf("left: %q", got)
		}
	})
}

func TestRotatorWhenTheRuntimeFails(t *testing.T) {
	d := logDir(t, nil)
	r := newRuntime(t, d)
	r.lines(10)
	rotator := rotation(r, d)
	errAway := errors.New("away")
	rotator.Reopen = func(context.Context, string) error { return errAway }
	if err := rotator.rotateAll(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	if got := listed(t, d); got != "" || read(t, d, api.ContainerLogOpts{}) != numbered(1, 10) {
		t.Errorf("files %q; want the log as it was", got)
	}
	if err := os.Remove(r.path); err != nil {
		t.Fatal(err)
	}
	rotator.Reopen = r.reopen
	if err := rotator.rotateAll(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.path); err != nil {
		t.Errorf("the runtime was not told to write to a new file: %v", err)
	}
}

// TestInterruptedRotation: the files of an interrupted rotation are not shown, and the next rotation removes
// them.
func TestInterruptedRotation(t *testing.T) {
	old := livePath + ".20250101-000001"
	d := logDir(t, map[string]string{old: at(0, "stdout F a"), old + gz: at(0, "stdout F a"), old + ".tmp": "x"})
	r := newRuntime(t, d)
	r.lines(10)
	if got := read(t, d, api.ContainerLogOpts{}); got != "a\n"+numbered(1, 10) {
		t.Errorf("got %q", got)
	}
	if err := rotation(r, d).rotateAll(t.Context()); err != nil {
		t.Error(err)
	}
	if got := listed(t, d); !strings.HasPrefix(got, " .20250101-000001.gz .2") || len(strings.Fields(got)) != 2 {
		t.Errorf("files %q", got)
	}
}

func TestSecurityF1RotatorStaysInTheDirectory(t *testing.T) {
	d := logDir(t, map[string]string{"x": ""})
	outside := filepath.Join(t.TempDir(), "big")
	writeFile(t, outside, strings.Repeat("x", 1000))
	if err := os.Symlink(outside, filepath.Join(d.path, "link.log")); err != nil {
		t.Fatal(err)
	}
	rotator := &Rotator{
		Dir: d, MaxSize: 1,
		Running: func(context.Context) ([]Container, error) {
			return []Container{{ID: "a", Path: "link.log"}, {ID: "b", Path: outside}}, nil
		},
		Reopen: func(context.Context, string) error { t.Error("reopened"); return nil },
	}
	if err := rotator.rotateAll(t.Context()); err == nil || strings.Contains(err.Error(), "link.log") {
		t.Errorf("got %v, want that one log is not below the directory", err)
	}
}
