// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// TestStatusesOfOneTick checks two statuses that a job writes within one tick of the file clock, as it does at
// its end. It may write nothing afterwards.
func TestStatusesOfOneTick(t *testing.T) {
	t.Parallel()
	p, tick := place{root: t.TempDir()}, time.Now()
	if err := os.Mkdir(p.pod("uid"), 0o700); err != nil {
		t.Fatal(err)
	}
	show := func(s podjob.Status) {
		path := filepath.Join(p.pod("uid"), job.StatusFile)
		if err := jsonfile.Show(path, s); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, tick, tick); err != nil {
			t.Fatal(err)
		}
	}
	show(podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning}})
	said, seen, err := p.said("uid", nil, false)
	if err != nil || said == nil || said.Pod.Phase != corev1.PodRunning {
		t.Fatalf("first: %+v, %v, want Running", said, err)
	}
	if said, _, err := p.said("uid", seen, false); err != nil || said != nil {
		t.Errorf("the same again: %+v, %v, want nothing new", said, err)
	}
	show(podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodFailed}, Ended: true})
	if said, _, err := p.said("uid", seen, false); err != nil || said == nil || !said.Ended {
		t.Errorf("then: %+v, %v, want its end", said, err)
	}
}

// TestPlaceOfOthers checks that nothing is written to a directory where another user can decide which program a
// job runs.
func TestPlaceOfOthers(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p place) error{
		"nothing":   func(place) error { return nil },
		"sharedDir": func(p place) error { return os.Chmod(p.shared, 0o777) },                       //nolint:gosec // that is what is refused
		"bin":       func(p place) error { return os.Chmod(filepath.Join(p.shared, "bin"), 0o770) }, //nolint:gosec // as above
		"cluster":   func(p place) error { return os.Chmod(filepath.Dir(p.root), 0o720) },           //nolint:gosec // as above
		"link": func(p place) error {
			bin := filepath.Join(p.shared, "bin")
			if err := os.Rename(bin, bin+"2"); err != nil {
				return err
			}
			return os.Symlink(bin+"2", bin)
		},
		"owner": func(p place) error {
			if os.Getuid() != 0 {
				return os.Chmod(p.shared, 0o777) //nolint:gosec // only root can give files away
			}
			return os.Chown(p.root, 12345, -1)
		},
	} {
		shared := filepath.Join(t.TempDir(), "shared")
		p := place{shared: shared, root: filepath.Join(shared, "cluster", "node")}
		if err := p.prepare(program); err != nil {
			t.Fatal(err)
		}
		if err := spoil(p); err != nil {
			t.Fatal(err)
		}
		if err := p.prepare(program); (err != nil) != (name != "nothing") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "nothing" {
			continue
		}
		if err := os.WriteFile(p.program, []byte("two"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		if err := p.prepare(program); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(p.program); err != nil || string(got) != "one" {
			t.Errorf("the program of jobs is %q, %v, want what it should be", got, err)
		}
	}
}
