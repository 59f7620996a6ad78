// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a program may take to stop before it is killed.
const stopTimeout = 15 * time.Second

// process is a child process that is measured from outside.
type process struct {
	name string
	cmd  *exec.Cmd
	said *tail
	done chan struct{} // closed when the process has ended
	err  error         // read after done
}

// start starts a program. What it says is kept for error messages, and shown if show is set.
func start(name string, cmd *exec.Cmd, show bool) (*process, error) {
	p := &process{name: name, cmd: cmd, said: &tail{}, done: make(chan struct{})}
	var out io.Writer = p.said
	if show {
		out = io.MultiWriter(p.said, os.Stderr)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w; build it with make build", name, err)
	}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// pid is the process's id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// lost says why a process that nobody stopped has ended.
func (p *process) lost() error {
	<-p.done
	if p.err == nil {
		return fmt.Errorf("%s ended: %s", p.name, p.said)
	}
	return fmt.Errorf("%s ended: %w: %s", p.name, p.err, p.said)
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it is gone
	timer := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	<-p.done
}

// tailSize is how much of a program's output is kept.
const tailSize = 4096

// tail keeps the end of what is written to it.
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

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}
