// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
)

// guestPidFile has the number of a command in the sandbox.
const guestPidFile = "guest"

// The calls below are those of gVisor, whose processes are none of the machine's.

// Run makes a container of the bundle and starts it with the streams of the call.
func (r Runtime) Run(dir, id, bundle string, terminal bool) Call {
	return r.call(dir, terminal, "run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Wait ends with the container, and writes how it ended: see ExitCode.
func (r Runtime) Wait(dir, id string) Call { return r.call(dir, false, "wait")(id) }

// ExitCode reads what Wait has written.
func ExitCode(said []byte) (int, error) {
	var ended struct{ ExitStatus *int }
	if err := json.Unmarshal(said, &ended); err != nil {
		return 0, fmt.Errorf("read how the container ended: %w", err)
	}
	if ended.ExitStatus == nil {
		return 0, fmt.Errorf("read how the container ended: the runtime said %q", said)
	}
	return *ended.ExitStatus, nil
}

// Attend makes one more process, which Process has written into dir, and ends with it and with its exit code.
func (r Runtime) Attend(dir, id string) Call {
	return r.call(dir, false, "exec", "--process", filepath.Join(dir, processFile), "--internal-pid-file", filepath.Join(dir, guestPidFile))(id)
}

// GuestPID is the number of the process of Attend in the sandbox; an error if it does not run yet.
func (c Call) GuestPID() (int, error) { return c.pid(guestPidFile) }

// Signal sends a signal to the first process of the container.
func (r Runtime) Signal(dir, id string, signal int) Call {
	return r.call(dir, false, "kill")(id).with(signal)
}

// SignalGroup sends it to a group of processes, by its number in the sandbox.
func (r Runtime) SignalGroup(dir, id string, group, signal int) Call {
	return r.call(dir, false, "kill", "--pgid", strconv.Itoa(group))(id).with(signal)
}

// SignalProcess sends it to a process, by its number in the sandbox.
func (r Runtime) SignalProcess(dir, id string, pid, signal int) Call {
	return r.call(dir, false, "kill", "--pid", strconv.Itoa(pid))(id).with(signal)
}

// Forward connects the listener at socket with a port of the sandbox.
func (r Runtime) Forward(dir, id, socket string, port int) Call {
	return r.call(dir, false, "port-forward", "--stream", socket)(id).with(port)
}

// Stats writes what the container uses: see ReadStats.
func (r Runtime) Stats(dir, id string) Call { return r.call(dir, false, "events", "--stats")(id) }

// ReadStats reads what Stats has written: the time of all CPUs in nanoseconds, and bytes of memory.
func ReadStats(said []byte) (cpu, memory uint64, err error) {
	var event struct {
		Data *struct {
			CPU    struct{ Usage struct{ Total uint64 } }
			Memory struct{ Usage struct{ Usage uint64 } }
		}
	}
	if err := json.Unmarshal(said, &event); err != nil {
		return 0, 0, fmt.Errorf("read what the container uses: %w", err)
	}
	if event.Data == nil {
		return 0, 0, fmt.Errorf("read what the container uses: the runtime said %q", said)
	}
	return event.Data.CPU.Usage.Total, event.Data.Memory.Usage.Usage, nil
}

func (c Call) with(number int) Call {
	c.Argv = append(c.Argv, strconv.Itoa(number))
	return c
}
