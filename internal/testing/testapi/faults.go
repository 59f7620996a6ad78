// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Stop stops a private cluster cleanly and waits until it has ended. Its data stays.
func (a *API) Stop(t testing.TB) {
	t.Helper()
	a.privateCluster(t).endProcess(syscall.SIGTERM)
}

// Kill ends a private cluster like a crash of the process, without a clean stop. Its data stays.
func (a *API) Kill(t testing.TB) {
	t.Helper()
	a.privateCluster(t).killProcess()
}

// Restart starts a private cluster again after [API.Stop] or [API.Kill], on the same address and data, and
// returns when it is ready. A running cluster is stopped first.
func (a *API) Restart(t testing.TB) {
	t.Helper()
	c := a.privateCluster(t)
	c.endProcess(syscall.SIGTERM)
	if err := c.start(); err != nil {
		t.Fatalf("start the private API server again: %v", err)
	}
}

// Snapshot saves the current data of a private cluster. restore brings them back, as from a backup: later writes
// are lost, and resource versions begin again from the snapshot. For both the cluster stops, and it is ready
// again when they return.
func (a *API) Snapshot(t testing.TB) (restore func()) {
	t.Helper()
	c, saved := a.privateCluster(t), filepath.Join(t.TempDir(), "etcd")
	data := filepath.Join(c.dataDir(), "etcd")
	c.endProcess(syscall.SIGTERM)
	if err := os.CopyFS(saved, os.DirFS(data)); err != nil {
		t.Fatalf("keep the data of the private API server: %v", err)
	}
	a.Restart(t)
	return func() {
		t.Helper()
		c.killProcess()
		err := os.RemoveAll(data)
		if err == nil {
			err = os.CopyFS(data, os.DirFS(saved))
		}
		if err != nil {
			t.Fatalf("bring back the data of the private API server: %v", err)
		}
		a.Restart(t)
	}
}

// Pause lets a private cluster hang: connections stay open and nothing answers, until [API.Resume].
func (a *API) Pause(t testing.TB) {
	t.Helper()
	a.signalServer(t, syscall.SIGSTOP)
}

// Resume ends a [API.Pause].
func (a *API) Resume(t testing.TB) {
	t.Helper()
	a.signalServer(t, syscall.SIGCONT)
}

func (a *API) signalServer(t testing.TB, s syscall.Signal) {
	t.Helper()
	c := a.privateCluster(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		t.Fatalf("send %s to the private API server: it is stopped", s)
	}
	if err := c.running.cmd.Process.Signal(s); err != nil {
		t.Fatalf("send %s to the private API server: %v", s, err)
	}
}

// privateCluster returns the cluster if it belongs to one test: a fault in a shared cluster would affect other tests.
func (a *API) privateCluster(t testing.TB) *cluster {
	t.Helper()
	if a.cluster == nil || a.cluster.name != privateName {
		t.Fatal("this API server is shared with other tests: use one from testapi.New for faults")
	}
	return a.cluster
}
