// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is the time after which a program that does not stop is killed.
const stopTimeout = 15 * time.Second

// process is a child process, measured from outside.
type process struct {
	name string
	cmd  *exec.Cmd
	said *tail
	done chan struct{} // closed when the process has ended
	err  error         // read after done

	account  *account      // of all that it needs for its pods; nil: no account
	children bool          // its CPU time includes the programs that it has run
	backend  backend       // the system that runs its pods, if it is not a cluster; not measured; nil: no such system
	program  []string      // the command of its pods, without the last argument, which is the name of the pod; nil: no command
	machines *qemuMachines // the machines of its pods; not measured; nil without them
	lower    *lower        // the cluster that runs its pods; not measured; nil without one
	beside   *process      // is measured with it, and stopped after it; nil: no such process
	stopped  func()        // called when both have ended; may be nil
}

// startProgram starts a program. Its output is kept for error messages, and shown if show is set.
func startProgram(name string, cmd *exec.Cmd, show bool) (*process, error) {
	p := &process{name: name, cmd: cmd, said: &tail{}, done: make(chan struct{})}
	var out io.Writer = p.said
	if show {
		out = io.MultiWriter(p.said, os.Stderr)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // this program handles an interrupt from the terminal, and ends the process when the pods have ended
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w; build it with make build", name, err)
	}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// processID returns the process's ID.
func (p *process) processID() int { return p.cmd.Process.Pid }

// cpuTime returns the CPU time of the process and of the one beside it.
func (p *process) cpuTime() (time.Duration, error) {
	used, err := cpuTime(p.processID())
	if err == nil && p.children {
		used, err = cpuTimeOfAll(p.processID())
	}
	if err != nil || p.beside == nil {
		return used, err
	}
	more, err := p.beside.cpuTime()
	return used + more, err
}

// peakMemory returns the largest resident memory in bytes of the process and of the one beside it.
func (p *process) peakMemory() (int64, error) {
	peak, err := peakMemory(p.processID())
	if err != nil || p.beside == nil {
		return peak, err
	}
	more, err := p.beside.peakMemory()
	return peak + more, err
}

// endReason returns the reason for the unexpected end of a process.
func (p *process) endReason() error {
	<-p.done
	if p.err == nil {
		return fmt.Errorf("%s ended: %s", p.name, p.said)
	}
	return fmt.Errorf("%s ended: %w: %s", p.name, p.err, p.said)
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that the process has ended
	timer := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.done
	if p.beside != nil {
		p.beside.stop()
	}
	if p.backend != nil {
		p.backend.stop()
	}
	if p.stopped != nil {
		p.stopped()
	}
}

// tailSize is the number of kept bytes of a program's output.
const tailSize = 4096

// tail keeps the end of its input.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write keeps p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailSize; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}

// besideDone returns a channel that is closed when the process beside it has ended, or nil if there is none.
func (p *process) besideDone() <-chan struct{} {
	if p.beside == nil {
		return nil
	}
	return p.beside.done
}

// startReady starts a program, and returns when the program reports on its third descriptor that it is ready.
func (m *machine) startReady(ctx context.Context, name string, cmd *exec.Cmd) (*process, error) {
	says, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer says.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	p, err := startProgram(name, cmd, m.cfg.logs)
	_ = theirs.Close() // otherwise the pipe would stay open after the end of the child
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if !saysReady(says) {
		_ = cmd.Process.Kill() // the process has usually ended already
		return nil, p.endReason()
	}
	return p, nil
}
