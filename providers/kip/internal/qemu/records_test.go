// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// recorded returns a driver with the record of one machine whose QEMU does not run.
func recorded(t *testing.T, r record) *Driver {
	t.Helper()
	d, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(d.config.Dir, r.Machine.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.write(r.Machine.ID, r); err != nil {
		t.Fatal(err)
	}
	return d
}

// stateOf returns the state of the only machine in a list, or Unknown for an empty list.
func stateOf(t *testing.T, d *Driver) machine.State {
	t.Helper()
	all, err := d.List(t.Context(), nil)
	if err != nil || len(all) > 1 {
		t.Fatalf("list: %v, %v", all, err)
	}
	if len(all) == 0 {
		return machine.Unknown
	}
	return all[0].State
}

// TestEndedMachineIsListedHoweverQuietItWas: a machine that ended while no node ran, and wrote nothing for an hour before, is in the next lists.
func TestEndedMachineIsListedHoweverQuietItWas(t *testing.T) {
	d := recorded(t, record{Machine: machine.Machine{ID: "vk-1", State: machine.Running}, Begun: true})
	console := filepath.Join(d.config.Dir, "vk-1", consoleFile)
	if err := os.WriteFile(console, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(console, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := stateOf(t, d); got != machine.Gone {
			t.Fatalf("state %d, want %d", got, machine.Gone)
		}
	}
	r, err := d.record("vk-1")
	if err != nil {
		t.Fatal(err)
	}
	r.Ended = time.Now().Add(-keepGone - time.Second)
	if err := d.write("vk-1", r); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, d); got != machine.Unknown {
		t.Errorf("state %d after keepGone, want no machine", got)
	}
}

// TestMachineOfAnInterruptedStartEnds: the node ended after QEMU had started, before Start saved that. The machine is Running, and Gone after its end; it
// does not start again.
func TestMachineOfAnInterruptedStartEnds(t *testing.T) {
	d := recorded(t, record{Machine: machine.Machine{ID: "vk-1", State: machine.Running}})
	if got := stateOf(t, d); got != machine.Starting {
		t.Fatalf("without QEMU: state %d, want %d", got, machine.Starting)
	}
	lock, err := lockOf(filepath.Join(d.config.Dir, "vk-1"), unix.LOCK_EX) // as QEMU has it
	if err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, d); got != machine.Running {
		t.Errorf("while QEMU runs: state %d, want %d", got, machine.Running)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, d); got != machine.Gone {
		t.Errorf("after QEMU: state %d, want %d", got, machine.Gone)
	}
}
