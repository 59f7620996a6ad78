// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is the time limit for a process to end. A node first ends its pods.
const patience = 45 * time.Second

// child is a process of the demo.
type child struct {
	name, log string
	cmd       *exec.Cmd
	// input is the standard input. Closing it ends the process. Nil: SIGTERM ends the process.
	input io.Closer
	// ended is closed after the end, and err is its reason.
	ended chan struct{}
	err   error
}

// startChild starts a process, whose output goes to a file. When the process ends, the context of the demo is cancelled.
func (d *demo) startChild(name string, cmd *exec.Cmd, input io.Closer) error {
	c := &child{name: name, log: filepath.Join(d.dir, name+".log"), cmd: cmd, input: input, ended: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	d.children = append(d.children, c)
	go func() { // stop waits for its end
		c.err = cmd.Wait()
		d.fail(c.describeEnd())
		close(c.ended)
	}()
	return nil
}

// describeEnd returns an error for the end of the process, with the last lines of its log.
func (c *child) describeEnd() error {
	reason := "exit code 0"
	if c.err != nil {
		reason = c.err.Error()
	}
	text, _ := os.ReadFile(c.log) // without a log, the error only has the reason
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("the process of %s has ended: %s. The end of its log:\n  %s", c.name, reason, strings.Join(lines[max(0, len(lines)-3):], "\n  "))
}

// stop ends the process and waits for its end.
func (c *child) stop() error {
	if c.input != nil {
		if err := c.input.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: it has ended
			return fmt.Errorf("stop %s: %w", c.name, err)
		}
	} else if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	wait, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-c.ended:
		return nil
	case <-wait.Done():
	}
	_ = c.cmd.Process.Kill() // it may have ended now
	<-c.ended
	return fmt.Errorf("stop %s: it did not end within %s and was killed, so it may have left processes of pods", c.name, patience)
}
