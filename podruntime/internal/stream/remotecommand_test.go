// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestExecJoinsStreamsAndExitCode(t *testing.T) {
	s := newServer(t, &server{run: func(_ context.Context, p process) error {
		typed, err := io.ReadAll(p.in) // ends only when the client's input has ended
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s %q %s", typed, p.cmd, p.id)
		fmt.Fprint(p.err, "broken")
		return utilexec.CodeExitError{Err: errors.New("exit"), Code: 42}
	}})
	out, errors_ := &sink{}, &sink{}
	err := s.streams.Exec(t.Context(), s.id, []string{"sh", "-c", "x y"}, &client{in: strings.NewReader("typed"), out: out, err: errors_})
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 42 || !exit.Exited() {
		t.Errorf("the end of the command: %v, want exit code 42", err)
	}
	if want := `typed ["sh" "-c" "x y"] ` + s.id; out.String() != want {
		t.Errorf("stdout %q, want %q", out, want)
	}
	if errors_.String() != "broken" {
		t.Errorf("stderr %q", errors_)
	}
}

func TestExecOnlyOutput(t *testing.T) {
	big := strings.Repeat("0123456789", 200_000)
	s := newServer(t, &server{run: func(_ context.Context, p process) error {
		if p.in != nil || p.err != nil {
			return errors.New("streams that nobody asked for")
		}
		_, err := io.WriteString(p.out, big)
		return err
	}})
	out := &sink{}
	if err := s.streams.Exec(t.Context(), s.id, []string{"cat"}, &client{out: out}); err != nil {
		t.Error(err)
	}
	if out.String() != big {
		t.Errorf("%d bytes of output, want %d", len(out.String()), len(big))
	}
}

func TestErrorOfRuntimeIsNotWrappedTwice(t *testing.T) {
	s := newServer(t, &server{run: func(context.Context, process) error {
		return errors.New("exec: \"x\": executable file not found in $PATH")
	}})
	for name, run := range map[string]func(api.AttachIO) error{
		"exec":   func(a api.AttachIO) error { return s.streams.Exec(t.Context(), s.id, []string{"x"}, a) },
		"attach": func(a api.AttachIO) error { return s.streams.Attach(t.Context(), s.id, false, a) },
	} {
		err := run(&client{out: &sink{}})
		if err == nil || err.Error() != "exec: \"x\": executable file not found in $PATH" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBrokenConnectionIsNoSuccess: a broken connection does not look like a successful command.
func TestBrokenConnectionIsNoSuccess(t *testing.T) {
	started := make(chan struct{})
	s := newServer(t, &server{run: func(ctx context.Context, p process) error {
		fmt.Fprint(p.out, "half of the")
		close(started)
		_, _ = io.ReadAll(p.in)
		return nil
	}})
	typing, typed := io.Pipe()
	defer typed.Close()
	out, result := &sink{}, make(chan error, 1)
	go func() {
		result <- s.streams.Exec(t.Context(), s.id, []string{"x"}, &client{in: typing, out: out})
	}()
	within(t, started, "start")
	s.listener.cut()
	if err := within(t, result, "end"); !errors.Is(err, errSilent) {
		t.Errorf("after a connection that broke: %v", err)
	}
}

func TestTerminal(t *testing.T) {
	got := make(chan [2]uint16)
	s := newServer(t, &server{run: func(_ context.Context, p process) error {
		if !p.tty || p.err != nil {
			return fmt.Errorf("tty %t, stderr %v", p.tty, p.err)
		}
		for range 2 {
			size := <-p.resize
			got <- [2]uint16{size.Width, size.Height}
		}
		return nil
	}})
	for name, run := range map[string]func(api.AttachIO) error{
		"exec":   func(a api.AttachIO) error { return s.streams.Exec(t.Context(), s.id, []string{"sh"}, a) },
		"attach": func(a api.AttachIO) error { return s.streams.Attach(t.Context(), s.id, true, a) },
	} {
		t.Run(name, func(t *testing.T) {
			sizes, result := make(chan api.TermSize, 1), make(chan error, 1)
			go func() { result <- run(&client{in: strings.NewReader(""), out: &sink{}, tty: true, sizes: sizes}) }()
			for _, want := range [][2]uint16{{80, 24}, {132, 50}} {
				sizes <- api.TermSize{Width: want[0], Height: want[1]}
				if size := within(t, got, "size"); size != want {
					t.Errorf("size %v, want %v", size, want)
				}
			}
			if err := within(t, result, "end"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAttachTerminalIsThatOfTheContainer: the pod decides whether its process has a terminal, not the client.
func TestAttachTerminalIsThatOfTheContainer(t *testing.T) {
	seen := make(chan process, 1)
	s := newServer(t, &server{run: func(_ context.Context, p process) error {
		seen <- p
		return nil
	}})
	for _, tty := range []bool{true, false} {
		sizes := make(chan api.TermSize)
		close(sizes)
		c := &client{out: &sink{}, err: &sink{}, tty: !tty, sizes: sizes}
		if err := s.streams.Attach(t.Context(), s.id, tty, c); err != nil {
			t.Error(err)
		}
		if p := within(t, seen, "session"); p.tty != tty || (p.err != nil) == tty {
			t.Errorf("a container with terminal %t: tty %t, stderr %v", tty, p.tty, p.err)
		}
	}
}

func TestSessionEndsWithItsContext(t *testing.T) {
	left := errors.New("the client has left")
	started := make(chan struct{}, 1)
	s := newServer(t, &server{run: func(ctx context.Context, p process) error {
		started <- struct{}{}
		block := make([]byte, 1<<20)
		for len(p.cmd) > 0 && p.cmd[0] == "yes" {
			if _, err := p.out.Write(block); err != nil {
				return err
			}
		}
		_, _ = io.ReadAll(p.in)
		return ctx.Err()
	}})
	for name, command := range map[string]string{"quiet": "sleep", "full of output that nobody takes": "yes"} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancelCause(t.Context())
			defer leave(nil)
			typing, typed := io.Pipe()
			reading, out := io.Pipe() // the output is not read
			result := make(chan error, 1)
			go func() { result <- s.streams.Exec(ctx, s.id, []string{command}, &client{in: typing, out: out}) }()
			within(t, started, "start")
			leave(left)
			at := time.Now()
			err := within(t, result, "end")
			if took := time.Since(at); !errors.Is(err, left) || took > 5*time.Second {
				t.Errorf("%v after %s", err, took)
			}
			typed.Close() // as the node's API does when its handler has returned
			reading.Close()
		})
	}
}

// TestHandshakeEndsWithItsContext: a session whose client has left ends, even if the server accepts the
// connection and sends nothing.
func TestHandshakeEndsWithItsContext(t *testing.T) {
	noLeaks(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	r := fakecri.New(fakecri.Config{StreamURL: func(any) (string, error) { return "http://" + l.Addr().String() + "/exec/x", nil }})
	_, id := startContainer(t, r)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	result := make(chan error, 1)
	go func() { result <- New(r.Client()).Exec(ctx, id, []string{"x"}, &client{out: &sink{}}) }()
	conn := within(t, accepted, "connection")
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the request was sent, and the client waits for a response
		t.Fatal(err)
	}
	leave()
	if err := within(t, result, "end"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestSessionThatCannotBegin(t *testing.T) {
	noLeaks(t)
	url := ""
	r := fakecri.New(fakecri.Config{StreamURL: func(any) (string, error) { return url, nil }})
	_, id := startContainer(t, r)
	s := New(r.Client())
	exec := func(id string) error { return s.Exec(t.Context(), id, []string{"x"}, &client{out: &sink{}}) }
	if err := exec("none"); !errdefs.IsNotFound(err) {
		t.Errorf("a container that does not exist: %v", err)
	}
	web := newServer(t, &server{})
	for _, tt := range []struct{ url, want string }{
		{"http://" + web.listener.Addr().String() + "/exec/wrong", "404"},
		{"unix:///run/x", "scheme"},
		{"http://%", "URL"},
	} {
		url = tt.url
		if err := exec(id); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want it to tell of %s", tt.url, err, tt.want)
		}
	}
}

// direct is a runtime that serves streams itself.
type direct struct {
	*fakecri.Client
	calls []string
}

func (d *direct) StreamExec(_ context.Context, id string, command []string, _ api.AttachIO) error {
	d.calls = append(d.calls, fmt.Sprint("exec ", id, command))
	return utilexec.CodeExitError{Err: errors.New("exit"), Code: 3}
}

func (d *direct) StreamAttach(_ context.Context, id string, a api.AttachIO) error {
	d.calls = append(d.calls, fmt.Sprint("attach ", id, a.TTY()))
	return nil
}

func (d *direct) StreamPort(_ context.Context, id string, port int32, _ io.ReadWriteCloser) error {
	d.calls = append(d.calls, fmt.Sprint("port ", id, port))
	return nil
}

func TestRuntimeInTheProcessServesStreamsItself(t *testing.T) {
	d := &direct{Client: fakecri.New(fakecri.Config{}).Client()}
	s := New(d)
	var exit utilexec.ExitError
	if err := s.Exec(t.Context(), "c", []string{"x"}, &client{}); !errors.As(err, &exit) || exit.ExitStatus() != 3 {
		t.Error(err)
	}
	if err := s.Attach(t.Context(), "c", true, &client{}); err != nil {
		t.Error(err)
	}
	if err := s.PortForward(t.Context(), Target{SandboxID: "s"}, 80, nil); err != nil {
		t.Error(err)
	}
	if want := []string{"exec c[x]", "attach ctrue", "port s80"}; !slices.Equal(d.calls, want) {
		t.Errorf("%q, want %q", d.calls, want)
	}
}
