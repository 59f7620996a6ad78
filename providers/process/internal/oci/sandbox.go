// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// guestPidFile has the PID of a process in the sandbox.
const guestPidFile = "guest"

// Only gVisor has the commands below. Its processes are not processes of the machine.

// Run creates and starts the container of the bundle, with the streams of the call.
func (r Runtime) Run(dir, id, bundle string, terminal bool) Call {
	return r.newCall(dir, terminal, "run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Keep does the same, and runs until the container ends, with the exit code of the container: see Runs and Kept.
// It leaves no state of the container.
func (r Runtime) Keep(dir, id, bundle string, terminal bool) Call {
	return r.newCall(dir, terminal, "run", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Kept reports whether a call of Keep has ended because the container ended. A failed command has an exit code,
// too. So Kept checks that the call created the container, logged no error since, and removed the container.
func (r Runtime) Kept(c Call, id string) bool {
	_, made := c.PID()
	said, err := c.Errors()
	return made == nil && err == nil && len(said) == 0 && !r.Knows(id)
}

// Runs reports whether Keep has started the container.
func (r Runtime) Runs(id, sandbox string) bool {
	data, err := os.ReadFile(r.stateFile(id, sandbox, "state"))
	var state struct{ Status string }
	return err == nil && json.Unmarshal(data, &state) == nil && state.Status == "running"
}

// Forget removes the state of a sandbox, or of a container in it, after all its processes have ended. It is
// cheaper than Delete, because it runs no command.
func (r Runtime) Forget(id, sandbox string) error {
	paths := []string{r.stateFile(id, sandbox, "lock"), r.stateFile(id, sandbox, "state")}
	if id == sandbox {
		paths = append(paths, filepath.Join(r.Root, "runsc-"+sandbox+".sock"))
	}
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r Runtime) stateFile(id, sandbox, kind string) string {
	return filepath.Join(r.Root, id+"_sandbox:"+sandbox+"."+kind)
}

// Attend starts another process, which Process has written into dir. The command runs until the process ends, and
// ends with its exit code.
func (r Runtime) Attend(dir, id string) Call {
	return r.newCall(dir, false, "exec", "--process", filepath.Join(dir, processFile), "--internal-pid-file", filepath.Join(dir, guestPidFile))(id)
}

// GuestPID returns the PID of the process of Attend in the sandbox. It returns an error if the process does not
// run yet.
func (c Call) GuestPID() (int, error) { return c.readPID(guestPidFile) }

// Signal sends a signal to the first process of the container.
func (r Runtime) Signal(dir, id string, signal int) Call {
	return r.newCall(dir, false, "kill")(id).withNumber(signal)
}

// SignalProcess sends a signal to a process, by its PID in the sandbox.
func (r Runtime) SignalProcess(dir, id string, pid, signal int) Call {
	return r.newCall(dir, false, "kill", "--pid", strconv.Itoa(pid))(id).withNumber(signal)
}

// Processes prints the processes of the container: see ReadProcesses.
func (r Runtime) Processes(dir, id string) Call { return r.newCall(dir, false, "ps")(id) }

// ReadProcesses parses the output of Processes. It returns the children of each process, by their PIDs in the
// sandbox.
func ReadProcesses(said []byte) map[int][]int {
	children := map[int][]int{}
	for line := range bytes.Lines(said) {
		fields := bytes.Fields(line) // UID, PID, PPID; the first line is the header
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(string(fields[1]))
		parent, notParent := strconv.Atoi(string(fields[2]))
		if err == nil && notParent == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

// Forward connects the listener at socket to a port of the sandbox.
func (r Runtime) Forward(dir, id, socket string, port int) Call {
	return r.newCall(dir, false, "port-forward", "--stream", socket)(id).withNumber(port)
}

// Stats prints the resource usage of the container: see ReadStats.
func (r Runtime) Stats(dir, id string) Call { return r.newCall(dir, false, "events", "--stats")(id) }

// ReadStats parses the output of Stats: CPU time in nanoseconds, and bytes of memory.
func ReadStats(said []byte) (cpu, memory uint64, err error) {
	var event struct {
		Data *struct {
			CPU    struct{ Usage struct{ Total uint64 } }
			Memory struct{ Usage struct{ Usage uint64 } }
		}
	}
	if err := json.Unmarshal(said, &event); err != nil {
		return 0, 0, fmt.Errorf("read the resource use of the container: %w", err)
	}
	if event.Data == nil {
		return 0, 0, fmt.Errorf("read the resource use of the container: the runtime said %q", said)
	}
	return event.Data.CPU.Usage.Total, event.Data.Memory.Usage.Usage, nil
}

func (c Call) withNumber(number int) Call {
	c.Argv = append(c.Argv, strconv.Itoa(number))
	return c
}
