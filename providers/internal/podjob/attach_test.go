// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// listener is an attach session with an output.
type listener struct{ out io.Writer }

func (listener) Stdin() io.Reader            { return nil }
func (l listener) Stdout() io.WriteCloser    { return writer{l.out} }
func (l listener) Stderr() io.WriteCloser    { return nil }
func (listener) TTY() bool                   { return false }
func (listener) Resize() <-chan api.TermSize { return nil }

type writer struct{ io.Writer }

func (writer) Close() error { return nil }

// slow blocks writes until proceed is closed.
type slow struct {
	begun, proceed chan struct{}
	once           *sync.Once
	got            *bytes.Buffer
}

func newSlow() slow {
	return slow{make(chan struct{}), make(chan struct{}), &sync.Once{}, &bytes.Buffer{}}
}

func (s slow) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.proceed
	return s.got.Write(b)
}

// attached returns a container with an attached reader that does not read until proceed is closed.
func attached(t *testing.T) (c *container, out slow, ended chan error) {
	t.Helper()
	r := newRuntime(t.TempDir(), "")
	c = &container{id: "c", ended: make(chan struct{}), viewers: map[*viewer]bool{}}
	r.containers["c"] = c
	out, ended = newSlow(), make(chan error, 1)
	go func() { ended <- r.StreamAttach(t.Context(), "c", listener{out}) }()
	for begun := false; !begun; {
		c.showOutput([]byte("x"), false)
		select {
		case <-out.begun:
			begun = true
		case <-time.After(time.Millisecond):
		}
	}
	return c, out, ended
}

// TestContainerWaitsForNoViewer: a client that attaches and does not read is disconnected, and the container keeps running.
func TestContainerWaitsForNoViewer(t *testing.T) {
	c, out, ended := attached(t)
	defer close(out.proceed)
	line := bytes.Repeat([]byte("y"), 16<<10)
	for range 2 * maxBehind / len(line) {
		c.showOutput(line, false)
	}
	if err := <-ended; !errors.Is(err, errBehind) {
		t.Errorf("got %v, want to be told that it is behind", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.viewers) > 0 {
		t.Error("it is attached yet")
	}
}

// TestViewerGetsTheEndOfTheOutput: a slow reader gets all output that a container wrote before its end.
func TestViewerGetsTheEndOfTheOutput(t *testing.T) {
	c, out, ended := attached(t)
	line := bytes.Repeat([]byte("y"), 1000)
	for range maxBehind / 2 / len(line) {
		c.showOutput(line, false)
	}
	close(c.ended)
	close(out.proceed)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.got.Bytes(), []byte("y")); n != maxBehind/2/len(line)*len(line) {
		t.Errorf("%d bytes came", n)
	}
}

// running returns a running container and its runtime.
func running(t *testing.T) *runtime {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	e := enter.Entry{Argv: []string{"/bin/sleep", "300"}, Dir: "/", Root: t.TempDir()}
	p, err := launchContainer(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.process.Kill()
		_, _ = p.process.Wait()
		p.close()
	})
	r := newRuntime(t.TempDir(), "")
	r.containers["c"] = &container{id: "c", spec: e, pid: p.process.Pid, ended: make(chan struct{})}
	return r
}

// TestOutputComesBeforeTheExitCode: the output of a command is complete, even if it is read long after the command's end.
func TestOutputComesBeforeTheExitCode(t *testing.T) {
	r, out, done := running(t), newSlow(), filepath.Join(t.TempDir(), "done")
	result := make(chan error, 1)
	go func() {
		result <- r.StreamExec(t.Context(), "c", []string{"/bin/sh", "-c", "head -c 60000 /dev/zero; : > " + done + "; exit 3"}, listener{out})
	}()
	<-out.begun
	for _, err := os.Stat(done); err != nil; _, err = os.Stat(done) {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(lateOutput + 500*time.Millisecond) // nothing must happen in this time
	close(out.proceed)
	err := <-result
	var exited utilexec.ExitError
	if !errors.As(err, &exited) || exited.ExitStatus() != 3 || out.got.Len() != 60000 {
		t.Errorf("%v, %d bytes, want 3 and 60000", err, out.got.Len())
	}
}

// TestOutputOfWhatGoesOnIsNotAwaited: a command has ended when its process has ended, even if another process still holds its output.
func TestOutputOfWhatGoesOnIsNotAwaited(t *testing.T) {
	r, out := running(t), newSlow()
	close(out.proceed)
	if err := r.StreamExec(t.Context(), "c", []string{"/bin/sh", "-c", "sleep 200 & echo begun"}, listener{out}); err != nil || out.got.String() != "begun\n" {
		t.Errorf("%v, %q", err, out.got)
	}
}

// TestNoExitCodeIsInvented: an end that was not observed has no exit code.
func TestNoExitCodeIsInvented(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &ws, 0, nil); err != nil {
		t.Fatal(err)
	}
	if code, err := awaitCommand(t.Context(), cmd.Process); err == nil {
		t.Errorf("a command that somebody else waited for: %d", code)
	}
	c := &container{started: time.Now(), finished: time.Now(), lost: true}
	if s := c.status(); s.GetReason() != "ContainerStatusUnknown" {
		t.Errorf("a container that somebody else waited for: %v", s)
	}
	r := running(t)
	gone := exec.CommandContext(t.Context(), "/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	r.containers["c"].pid = gone.Process.Pid
	var exited utilexec.ExitError
	if err := r.StreamExec(t.Context(), "c", []string{"/bin/true"}, listener{io.Discard}); err == nil || errors.As(err, &exited) {
		t.Errorf("a command in a container that is gone: %v, want no exit code", err)
	}
}
