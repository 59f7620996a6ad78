// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/daemon"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/failpoint"
)

// child is one process of the daemon.
type child struct {
	*world
	cmd     *exec.Cmd
	inspect string // its socket
	stdin   io.Closer
	said    *testlog.Buffer
	began   time.Time
	ready   chan struct{} // closed when the node is ready
	readyAt time.Time     // set before ready is closed
	done    chan struct{} // closed when the process has ended
	err     error         // set before done is closed
}

// launch starts the daemon; the end of the test stops it.
func (w *world) launch(env ...string) *child {
	w.Helper()
	c := &child{world: w, said: &testlog.Buffer{}, ready: make(chan struct{}), done: make(chan struct{})}
	flags := w.flags
	flags.Inspect = filepath.Join(w.dir, fmt.Sprintf("daemon-%d", w.children.Add(1)))
	c.inspect = flags.Inspect
	c.cmd = exec.Command(os.Args[0], flags.Args()...) // the tests end it by signals
	c.cmd.Env = append(append(os.Environ(), daemon.Variable+"=1"), env...)
	c.cmd.Stderr = c.said
	if w.isolate {
		c.cmd.SysProcAttr = pidNamespace()
	}
	stdin, err := c.cmd.StdinPipe() // the daemon ends when the other end is closed
	if err != nil {
		w.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	c.began = time.Now()
	if err := c.cmd.Start(); err != nil {
		w.Fatalf("start the daemon: %v", err)
	}
	go c.wait(stdout)
	w.Cleanup(func() {
		c.kill()
		if w.Failed() {
			w.Logf("daemon %d said at last:\n%s", c.cmd.Process.Pid, c.said.Tail())
		}
	})
	return c
}

// wait reads the daemon's output until the daemon has ended.
func (c *child) wait(stdout io.Reader) {
	defer close(c.done)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "ready" {
			c.readyAt = time.Now()
			close(c.ready)
		}
	}
	c.err = c.cmd.Wait()
	_ = c.stdin.Close()
}

// start launches the daemon and waits until the node is ready.
func (w *world) start(env ...string) *child {
	w.Helper()
	c := w.launch(env...)
	c.awaitReady()
	return c
}

// startToDieAt starts a daemon that kills itself when it passes the point for the n-th time.
func (w *world) startToDieAt(point string, n int) *child {
	w.Helper()
	return w.launch(fmt.Sprintf("%s=%s:%d", failpoint.Variable, point, n))
}

func (c *child) awaitReady() {
	c.Helper()
	select {
	case <-c.ready:
	case <-c.done:
		c.Fatalf("the daemon ended before it was ready: %v:\n%s", c.err, c.said.Tail())
	case <-time.After(patience):
		c.Fatalf("the daemon is not ready after %v:\n%s", patience, c.said.Tail())
	}
}

func (c *child) awaitEnd() {
	c.Helper()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.Fatalf("the daemon has not ended after %v:\n%s", patience, c.said.Tail())
	}
}

func (c *child) signal(s syscall.Signal) {
	c.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.Errorf("signal the daemon: %v", err)
	}
}

// kill kills the daemon with SIGKILL.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended
	<-c.done
}

// forget drops the daemon's output, which grows large.
func (c *child) forget() {
	if !c.Failed() {
		c.said.Clear()
	}
}

// memory returns a size from the process's status in /proc, in bytes.
func (c *child) memory(field string) int {
	c.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		c.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				c.Fatal(err)
			}
			return n << 10
		}
	}
	c.Fatalf("the kernel does not tell %s", field)
	return 0
}

// files returns the number of the process's file descriptors.
func (c *child) files() int {
	c.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
	if err != nil {
		c.Fatal(err)
	}
	return len(entries)
}

// stop ends the daemon with SIGTERM, as an operating system does, and returns the time that this took.
func (c *child) stop() time.Duration {
	c.Helper()
	began := time.Now()
	c.signal(syscall.SIGTERM)
	c.awaitEnd()
	if c.err != nil {
		c.Errorf("the daemon ended with %v, want exit code 0:\n%s", c.err, c.said.Tail())
	}
	return time.Since(began)
}

// ask reads one value from the daemon's inspection socket.
func (c *child) ask(path string) string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	text, err := daemon.Inspect(ctx, c.inspect, path)
	if err != nil {
		c.Fatal(err)
	}
	return text
}
