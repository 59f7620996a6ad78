// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

func TestOneJobTakesAPod(t *testing.T) {
	d := directory(t.TempDir())
	t.Setenv("SLURM_JOB_ID", "1")
	if err := d.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_JOB_ID", "2")
	if err := d.Claim(t.Context()); err == nil || !strings.Contains(err.Error(), "job 1 runs this pod") {
		t.Errorf("the second job: %v", err)
	}
}

// TestContainersKnowTheirJob checks that a container has the variables of its job, but not the token of the user
// that submitted the job.
func TestContainersKnowTheirJob(t *testing.T) {
	for name, want := range map[string]bool{"SLURM_JOB_ID": true, "SLURM_JWT": false, "SLURM_TIME_FORMAT": false, "SLURMD_NODENAME": false, "AWS_SECRET": false} {
		if got := ofSlurm(name); got != want {
			t.Errorf("%s is kept: %t, want %t", name, got, want)
		}
	}
}

// TestDirectoryKeepsWhatTheNodeReads checks that the node and the job use the same files: the node finds the
// job's status, and the job finds the node's order to stop.
func TestDirectoryKeepsWhatTheNodeReads(t *testing.T) {
	d := directory(t.TempDir())
	ctx := t.Context()
	if _, err := d.Bundle(ctx); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the bundle of a pod that was removed: %v", err)
	}
	if stop, err := d.StopOrder(ctx); stop != nil || err != nil {
		t.Errorf("without an order: %v, %v", stop, err)
	}
	until := time.Unix(1000, 0).UTC()
	err := errors.Join(jsonfile.Write(filepath.Join(string(d), StopFile), podjob.Stop{GraceSeconds: 7, Until: until}), d.WriteStatus(ctx, podjob.Status{Job: "7", Ended: true}),
		jsonfile.Write(filepath.Join(string(d), BundleFile), podjob.Bundle{Pod: &corev1.Pod{}, DNSDomain: "d"}))
	if err != nil {
		t.Fatal(err)
	}
	if stop, err := d.StopOrder(ctx); err != nil || *stop != (podjob.Stop{GraceSeconds: 7, Until: until}) {
		t.Errorf("the order: %v, %v", stop, err)
	}
	if b, err := d.Bundle(ctx); err != nil || b.DNSDomain != "d" {
		t.Errorf("the bundle: %+v, %v", b, err)
	}
	var said podjob.Status
	if err := jsonfile.Read(filepath.Join(string(d), StatusFile), &said); err != nil || said.Job != "7" || !said.Ended {
		t.Errorf("the node reads %+v, %v", said, err)
	}
}

// TestDamagedOrderIsNone checks that a damaged order file does not make the job stop its pod.
func TestDamagedOrderIsNone(t *testing.T) {
	d := directory(t.TempDir())
	if err := os.WriteFile(filepath.Join(string(d), StopFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if stop, err := d.StopOrder(t.Context()); stop != nil || !errors.Is(err, jsonfile.ErrDamaged) {
		t.Errorf("got %v, %v", stop, err)
	}
}

// TestWritersDoNotMeet checks that each of several concurrent writers writes a whole file without an error.
func TestWritersDoNotMeet(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 100 {
				if err := jsonfile.Write(path, strings.Repeat("x", 1000*(i+1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	var got string
	left, _ := os.ReadDir(dir)
	if err := jsonfile.Read(path, &got); err != nil || len(got)%1000 != 0 || len(left) != 1 {
		t.Errorf("%d bytes, %v, left %v", len(got), err, left)
	}
}
