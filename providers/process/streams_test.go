// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// session holds the streams of a client of exec or attach.
type session struct {
	stdin    *io.PipeReader
	typed    *io.PipeWriter
	terminal bool
	sizes    chan api.TermSize
	stdout   output
	stderr   output
}

func newSession(terminal bool) *session {
	s := &session{terminal: terminal, sizes: make(chan api.TermSize)}
	s.stdin, s.typed = io.Pipe()
	return s
}

func (s *session) Stdin() io.Reader            { return s.stdin }
func (s *session) Stdout() io.WriteCloser      { return &s.stdout }
func (s *session) TTY() bool                   { return s.terminal }
func (s *session) Resize() <-chan api.TermSize { return s.sizes }
func (s *session) Stderr() io.WriteCloser {
	if s.terminal {
		return nil
	}
	return &s.stderr
}

// output records everything that was written to it.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) Close() error { return nil }

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestTerminalOfACommand(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	s, ended := newSession(true), make(chan error, 1)
	go func() { ended <- w.StreamExec(t.Context(), id, []string{"size"}, s) }()
	for _, size := range []api.TermSize{{Width: 120, Height: 40}, {Width: 80, Height: 24}} {
		s.sizes <- size
		want := map[uint16]string{40: "size 40 120\r\n", 24: "size 24 80\r\n"}[size.Height]
		w.until(want, func() bool { return strings.Contains(s.stdout.String(), want) })
	}
	if err := s.typed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("end of the input: got %v", err)
	}
	err := w.StreamExec(t.Context(), id, []string{"exit", "9"}, newSession(true))
	if e, ok := err.(utilexec.ExitError); !ok || e.ExitStatus() != 9 {
		t.Errorf("exit 9: got %v", err)
	}
}

func TestTerminalEndsWithItsUser(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	ctx, cancel := context.WithCancel(t.Context())
	s, ended := newSession(true), make(chan error, 1)
	before := len(below(w.config.StateDir, id))
	go func() { ended <- w.StreamExec(ctx, id, []string{"size"}, s) }()
	w.until("the command", func() bool { return strings.Contains(s.stdout.String(), "size") })
	cancel()
	if err := <-ended; err == nil {
		t.Error("a session whose user has gone: got no error")
	}
	w.until("the end of the command", func() bool { return len(below(w.config.StateDir, id)) <= before })
}

func TestExecStreams(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	s, ended := newSession(false), make(chan error, 1)
	go func() { ended <- w.StreamExec(t.Context(), id, []string{"cat"}, s) }()
	text := strings.Repeat("0123456789abcdef", 1<<14)
	if _, err := io.WriteString(s.typed, text); err != nil {
		t.Fatal(err)
	}
	s.typed.Close()
	if err := <-ended; err != nil || s.stdout.String() != text {
		t.Errorf("cat: got %d bytes, want %d (%v)", len(s.stdout.String()), len(text), err)
	}
	s = newSession(false)
	err := w.StreamExec(t.Context(), id, []string{"cat", "/absent"}, s)
	if e, ok := err.(utilexec.ExitError); !ok || e.ExitStatus() != 1 || s.stdout.String() != "" || !strings.Contains(s.stderr.String(), "/absent") {
		t.Errorf("an absent file: got %v, output %q, %q", err, s.stdout.String(), s.stderr.String())
	}
}

// If a command is not in the image, kubectl shows the text of its streams and the exit code.
func TestCommandThatIsNotThere(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	for _, terminal := range []bool{false, true} {
		s := newSession(terminal)
		err := w.StreamExec(t.Context(), id, []string{"absent"}, s)
		if e, ok := err.(utilexec.ExitError); !ok || e.ExitStatus() != 127 {
			t.Errorf("with a terminal %v: got %v", terminal, err)
		}
		said := s.stderr.String()
		if terminal {
			said = s.stdout.String()
		}
		if !strings.Contains(said, `"absent": executable file not found in $PATH`) {
			t.Errorf("with a terminal %v it said %q", terminal, said)
		}
	}
}

func TestAttachWithInput(t *testing.T) {
	w := open(t, nil)
	id := w.run("cat", func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce = true, true }, "cat")
	s, ended := newSession(false), make(chan error, 1)
	go func() { ended <- w.StreamAttach(t.Context(), id, s) }()
	if _, err := io.WriteString(s.typed, "hello\n"); err != nil {
		t.Fatal(err)
	}
	w.until("the answer", func() bool { return s.stdout.String() == "hello\n" })
	s.typed.Close()
	if err := <-ended; err != nil {
		t.Errorf("attach: got %v", err)
	}
	if state := w.ended(id); state.GetExitCode() != 0 || w.log("cat") != "stdout F hello" {
		t.Errorf("got %v, log %q", state, w.log("cat"))
	}
	if err := w.StreamAttach(t.Context(), id, newSession(false)); err == nil {
		t.Error("attach to what has ended: got no error")
	}
}

func TestAttachTwice(t *testing.T) {
	w := open(t, nil)
	id := w.run("cat", func(c *runtimeapi.ContainerConfig) { c.Stdin = true }, "cat")
	ctx, cancel := context.WithCancel(t.Context())
	first, ended := newSession(false), make(chan error, 1)
	go func() { ended <- w.StreamAttach(ctx, id, first) }()
	if _, err := io.WriteString(first.typed, "one\n"); err != nil {
		t.Fatal(err)
	}
	w.until("the first answer", func() bool { return first.stdout.String() == "one\n" })
	cancel()
	<-ended //nolint:errcheck // how it ended does not matter
	second := newSession(false)
	go func() { ended <- w.StreamAttach(t.Context(), id, second) }()
	if _, err := io.WriteString(second.typed, "two\n"); err != nil {
		t.Fatal(err)
	}
	w.until("the second answer", func() bool { return second.stdout.String() == "two\n" })
	if err := w.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("attach to the end: got %v", err)
	}
}

func TestPortOfAPod(t *testing.T) {
	w := open(t, nil)
	port := freePort(t) // the network of the pod may be the machine's
	id := w.run("server", func(c *runtimeapi.ContainerConfig) {
		c.Envs = []*runtimeapi.KeyValue{{Key: "PORT", Value: []byte(strconv.Itoa(int(port)))}}
	})
	answer := make([]byte, 15)
	w.until("an answer of the pod", func() bool {
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- w.StreamPort(t.Context(), w.sandbox, port, far)
			far.Close()
		}()
		_, _ = io.WriteString(near, "GET / HTTP/1.0\r\n\r\n") // a port without a listener yet reads nothing
		_, err := io.ReadFull(near, answer)
		near.Close()
		<-ended //nolint:errcheck // how it ended does not matter
		return err == nil
	})
	if string(answer) != "HTTP/1.0 200 OK" {
		t.Errorf("got %q", answer)
	}
	if err := w.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	defer near.Close()
	if err := w.StreamPort(t.Context(), w.sandbox, port, far); err == nil || !strings.Contains(err.Error(), "of the pod") {
		t.Errorf("a port where nobody listens: got %v", err)
	}
	if err := w.StreamPort(t.Context(), "absent", port, far); err == nil {
		t.Error("a sandbox that is not there: got no error")
	}
}
