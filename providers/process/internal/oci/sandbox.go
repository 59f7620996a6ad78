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

// guestPidFile has the number of a command in the sandbox.
const guestPidFile = "guest"

// The calls below exist in gVisor only. Its processes are not processes of the machine.

// Run makes a container of the bundle and starts it with the streams of the call.
func (r Runtime) Run(dir, id, bundle string, terminal bool) Call {
	return r.newCall(dir, terminal, "run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Keep does the same, and ends with the container and with its exit code: see Runs and Kept. No state of the
// container is left.
func (r Runtime) Keep(dir, id, bundle string, terminal bool) Call {
	return r.newCall(dir, terminal, "run", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Kept reports whether a call of Keep that ended by itself ended because of the container. A program that fails
// or crashes has an exit code too. So the call must have made the container, must have logged no error since,
// and must have removed the container.
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

// Forget removes the runtime's state of a container of a sandbox, or of the sandbox itself, after all processes
// have ended. It saves a call of the program.
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

// Attend starts another process, which Process has written into dir. The call ends with the process, and with
// its exit code.
func (r Runtime) Attend(dir, id string) Call {
	return r.newCall(dir, false, "exec", "--process", filepath.Join(dir, processFile), "--internal-pid-file", filepath.Join(dir, guestPidFile))(id)
}

// GuestPID returns the number of the process of Attend in the sandbox. It is an error if the process does not
// run yet.
func (c Call) GuestPID() (int, error) { return c.readPID(guestPidFile) }

// Signal sends a signal to the first process of the container.
func (r Runtime) Signal(dir, id string, signal int) Call {
	return r.newCall(dir, false, "kill")(id).withNumber(signal)
}

// SignalProcess sends a signal to a process, by its number in the sandbox.
func (r Runtime) SignalProcess(dir, id string, pid, signal int) Call {
	return r.newCall(dir, false, "kill", "--pid", strconv.Itoa(pid))(id).withNumber(signal)
}

// Processes writes the processes of the container: see ReadProcesses.
func (r Runtime) Processes(dir, id string) Call { return r.newCall(dir, false, "ps")(id) }

// ReadProcesses reads the output of Processes: the children of each process, by their numbers in the sandbox.
func ReadProcesses(said []byte) map[int][]int {
	children := map[int][]int{}
	for line := range bytes.Lines(said) {
		fields := bytes.Fields(line) // UID, PID, PPID; the first line is the head
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

// Forward connects the listener at socket with a port of the sandbox.
func (r Runtime) Forward(dir, id, socket string, port int) Call {
	return r.newCall(dir, false, "port-forward", "--stream", socket)(id).withNumber(port)
}

// Stats writes the resource usage of the container: see ReadStats.
func (r Runtime) Stats(dir, id string) Call { return r.newCall(dir, false, "events", "--stats")(id) }

// ReadStats reads the output of Stats: the time of all CPUs in nanoseconds, and bytes of memory.
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
