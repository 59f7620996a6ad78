// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// streams is an api.AttachIO in memory.
type streams struct {
	in       io.Reader
	out, err bytes.Buffer
	tty      bool
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (s *streams) Stdin() io.Reader            { return s.in }
func (s *streams) Stdout() io.WriteCloser      { return nopCloser{&s.out} }
func (s *streams) Stderr() io.WriteCloser      { return nopCloser{&s.err} }
func (s *streams) TTY() bool                   { return s.tty }
func (s *streams) Resize() <-chan api.TermSize { return nil }

func TestExec(t *testing.T) {
	p := newProvider(t, Config{})
	create(t, p, newPod("a"))
	for _, tc := range []struct {
		name, in string
		cmd      []string
		out      string
		code     int
	}{
		{"echo", "", []string{"echo", "a", "b"}, "a b\n", 0},
		{"cat copies input", "text", []string{"cat"}, "text", 0},
		{"exit code", "", []string{"sh", "-c", "exit 7"}, "", 7},
		{"path and options", "", []string{"/bin/sh", "-ec", "echo x; exit 3; echo y"}, "x\n", 3},
		{"unknown command", "", []string{"python"}, "", 127},
		{"environment of the container", "", []string{"sh", "-c", `echo "$GREETING" $HOSTNAME`}, "hello a\n", 0},
		{"hostname", "", []string{"hostname"}, "a\n", 0},
		{"no files", "", []string{"cat", "/etc/hosts"}, "", 1},
		{"script from input", "echo 1\necho 2\nexit 4\necho 3\n", []string{"sh"}, "1\n2\n", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &streams{in: strings.NewReader(tc.in)}
			err := p.RunInContainer(t.Context(), "ns", "a", "c", tc.cmd, s)
			code := 0
			var exit exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitStatus()
			} else if err != nil {
				t.Fatal(err)
			}
			if s.out.String() != tc.out || code != tc.code {
				t.Errorf("%q: got %q, code %d, want %q, code %d; stderr %q", tc.cmd, &s.out, code, tc.out, tc.code, &s.err)
			}
			if (code == 127) != strings.Contains(s.err.String(), "not found") {
				t.Errorf("stderr: got %q", &s.err)
			}
		})
	}
}

func TestExecOnTerminal(t *testing.T) {
	p := newProvider(t, Config{})
	create(t, p, newPod("a"))
	s := &streams{in: strings.NewReader("echo bab\x7fd\r\x04"), tty: true}
	if err := p.RunInContainer(t.Context(), "ns", "a", "c", []string{"sh"}, s); err != nil {
		t.Fatal(err)
	}
	if got, want := s.out.String(), "\r\nbad\r\n$ "; !strings.HasPrefix(got, "$ echo ba") || !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want a prompt, the echo, and %q", got, want)
	}
}

func TestExecNeedsRunningContainer(t *testing.T) {
	p := newProvider(t, Config{})
	create(t, p, newPod("a", "start-delay", "1h"))
	run := func(pod, container string) error {
		return p.RunInContainer(t.Context(), "ns", pod, container, []string{"true"}, &streams{})
	}
	if err := run("b", "c"); !errdefs.IsNotFound(err) {
		t.Errorf("unknown pod: got %v", err)
	}
	if err := run("a", "d"); !errdefs.IsNotFound(err) {
		t.Errorf("unknown container: got %v", err)
	}
	if err := run("a", "c"); !errdefs.IsInvalidInput(err) {
		t.Errorf("container that has not started: got %v", err)
	}
}

func TestExecEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		create(t, p, newPod("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.RunInContainer(ctx, "ns", "a", "c", []string{"sleep", "3600"}, &streams{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}

func TestAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, Config{})
		create(t, p, newPod("a"), newPod("job", "run-for", "2s"))
		s := &streams{in: strings.NewReader("typed")}
		if err := p.AttachToContainer(t.Context(), "ns", "a", "c", s); err != nil {
			t.Fatal(err)
		}
		if got, want := s.out.String(), "pod ns/a container c started\ntyped"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		s = &streams{}
		if err := p.AttachToContainer(t.Context(), "ns", "job", "c", s); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(s.out.String(), "ended with exit code 0\n") {
			t.Errorf("got %q, want the log to its end", s.out.String())
		}
	})
}

// TestSessionsEndWithTheirContainer also has sessions that wait for input that never comes, and a container that
// ends by itself.
func TestSessionsEndWithTheirContainer(t *testing.T) {
	run := func(p *provider, command ...string) func(string, *streams) error {
		return func(name string, s *streams) error {
			return p.RunInContainer(context.Background(), "ns", name, "c", command, s)
		}
	}
	for _, tc := range []struct {
		name  string
		begin func(p *provider) func(pod string, s *streams) error
		code  int
	}{
		{"a command that waits", func(p *provider) func(string, *streams) error {
			return run(p, "sh", "-c", "sleep 1000; sleep 1000; exit 0")
		}, killed},
		{"a command that reads", func(p *provider) func(string, *streams) error { return run(p, "cat") }, killed},
		{"a shell", func(p *provider) func(string, *streams) error { return run(p, "sh") }, killed},
		{"attach", func(p *provider) func(string, *streams) error {
			return func(name string, s *streams) error {
				return p.AttachToContainer(context.Background(), "ns", name, "c", s)
			}
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProvider(t, Config{})
				deleted := newPod("deleted")
				create(t, p, deleted, newPod("job", "run-for", "60s"))
				for _, pod := range []string{"job", "deleted"} {
					after := map[string]time.Duration{"job": time.Minute, "deleted": 5 * time.Second}[pod]
					in, typed := io.Pipe()
					begin := time.Now()
					ended := make(chan error, 1)
					go func() { ended <- tc.begin(p)(pod, &streams{in: in}) }()
					if pod == "deleted" {
						time.AfterFunc(after, func() {
							if err := p.DeletePod(t.Context(), deleted); err != nil {
								t.Error(err)
							}
						})
					}
					err := <-ended
					var exit exec.CodeExitError
					if took := time.Since(begin); took != after || !errors.As(err, &exit) && err != nil || exit.Code != tc.code {
						t.Errorf("pod %s: got %v after %s, want exit code %d after %s", pod, err, took, tc.code, after)
					}
					typed.Close()
				}
			})
		})
	}
}

// writes records each write.
type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}

// TestLineOnATerminalIsOneWrite: kubectl shows its own messages on the same terminal, and none comes between a line and its end.
func TestLineOnATerminalIsOneWrite(t *testing.T) {
	var got writes
	sh := &shell{ctx: t.Context(), tty: true, stdout: terminal{&got}, stderr: terminal{&got}}
	if err := sh.run([]string{"echo", "hello", "you"}); err != nil || len(got) != 1 || got[0] != "hello you\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
