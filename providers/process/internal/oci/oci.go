// SPDX-License-Identifier: Apache-2.0

// Package oci drives an OCI runtime, such as runc, through its command line.
//
// The guarantee: no argument contains a secret. The runtime gets its input from files, which the caller stores in
// memory.
//
// Note: most functions only describe commands. A supervisor runs them in its own way, without os/exec.
package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The names of the files for one command, in a directory of its own.
const (
	logFile     = "log"
	pidFile     = "pid"
	consoleFile = "s"
	processFile = "process.json"
)

// ConfigFile is the name of a container's configuration in its bundle.
const ConfigFile = "config.json"

// Runtime is a container runtime.
type Runtime struct {
	// Program is the absolute path of its program.
	Program string
	// Root is the directory where the runtime stores the state of its containers.
	Root string
	// Flags are the global flags of every command.
	Flags []string `json:",omitempty"`
}

// Call is one command of the program, with its files in Dir.
type Call struct {
	Dir  string
	Argv []string
	// Before is the command line of a program that prepares the call and then executes Argv, which is appended to
	// its arguments. Nil means no such program.
	Before []string
}

// Console is the socket to which the program sends the terminal of the process.
func (c Call) Console() string { return filepath.Join(c.Dir, consoleFile) }

// Create creates the container of the bundle with its process, which waits for Start.
func (r Runtime) Create(dir, id, bundle string, terminal bool) Call {
	return r.newCall(dir, terminal, "create", "--bundle", bundle, "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Start starts the process of a created container.
func (r Runtime) Start(dir, id string) Call { return r.newCall(dir, false, "start")(id) }

// Exec starts another process, which Process has written into dir. The command ends when the process runs.
func (r Runtime) Exec(dir, id string, terminal bool) Call {
	return r.newCall(dir, terminal, "exec", "--detach", "--process", filepath.Join(dir, processFile), "--pid-file", filepath.Join(dir, pidFile))(id)
}

// Delete kills the container, and removes its state. An unknown container is no error.
func (r Runtime) Delete(dir, id string) Call { return r.newCall(dir, false, "delete", "--force")(id) }

// Knows reports whether the runtime may have state about the container.
func (r Runtime) Knows(id string) bool {
	if _, err := os.Lstat(filepath.Join(r.Root, id)); err == nil {
		return true
	}
	found, _ := filepath.Glob(filepath.Join(r.Root, id+"_sandbox:*.state")) // gVisor's; the pattern is well-formed
	return len(found) > 0
}

func (r Runtime) newCall(dir string, terminal bool, args ...string) func(id string) Call {
	argv := append([]string{r.Program, "--root", r.Root, "--log", filepath.Join(dir, logFile), "--log-format", "json"}, slices.Concat(r.Flags, args)...)
	if terminal {
		argv = append(argv, "--console-socket", filepath.Join(dir, consoleFile))
	}
	return func(id string) Call { return Call{Dir: dir, Argv: append(argv, id)} }
}

// PID returns the PID of the process that the call created.
func (c Call) PID() (pid int, err error) {
	return c.readPID(pidFile)
}

func (c Call) readPID(file string) (pid int, err error) {
	data, err := os.ReadFile(filepath.Join(c.Dir, file))
	if err != nil {
		return 0, fmt.Errorf("find the process of the container: %w", err)
	}
	if _, err := fmt.Sscanf(string(data), "%d", &pid); err != nil || pid <= 0 {
		return 0, fmt.Errorf("find the process of the container: %s said %q", filepath.Base(c.Argv[0]), data)
	}
	return pid, nil
}

// Failed returns the reason why a call failed: the errors in its log, or else the exit status of the program.
func (c Call) Failed(ended string) error {
	name := filepath.Base(c.Argv[0])
	said, err := c.Errors()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s; its log: %w", name, ended, err)
	case len(said) == 0:
		return fmt.Errorf("%s: %s", name, ended)
	}
	return fmt.Errorf("%s: %s", name, strings.Join(said, ": "))
}

// Errors returns the errors in the log of the call, the last first. A child process logs the cause, and the
// command itself logs the consequence.
func (c Call) Errors() (said []string, err error) {
	data, err := os.ReadFile(filepath.Join(c.Dir, logFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		entries := json.NewDecoder(bytes.NewReader(line)) // gVisor writes no newlines between entries
		for {
			var entry struct{ Level, Msg string }
			if entries.Decode(&entry) != nil {
				break // EOF, or not JSON
			}
			if entry.Level == "error" || entry.Level == "fatal" {
				said = append(said, strings.TrimSpace(entry.Msg))
			}
		}
	}
	slices.Reverse(said)
	return said, nil
}

// LogError writes an error to the log of the call in dir, in the format of the runtime.
func LogError(dir string, failed error) error {
	line, err := json.Marshal(map[string]string{"level": "error", "msg": failed.Error()})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Process writes the process for Exec into dir: the process of config with another command.
func Process(dir string, config []byte, argv []string, terminal bool) error {
	var c struct {
		Process map[string]any `json:"process"`
	}
	// Keep numbers as text: some have more digits than a float64.
	d := json.NewDecoder(bytes.NewReader(config))
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("read the configuration of the container: %w", err)
	}
	c.Process["args"], c.Process["terminal"] = argv, terminal
	data, err := json.Marshal(c.Process)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, processFile), data, 0o600)
}
