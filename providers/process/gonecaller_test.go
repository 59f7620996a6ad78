// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// After a client has disconnected, its session returns only when the command and all processes that it started
// have ended, including processes in their own sessions.
func TestSecurityE12CommandEndsWithItsClient(t *testing.T) {
	for _, isolation := range []string{"", process.IsolationNone} {
		for name, terminal := range map[string]bool{"streams": false, "a terminal": true} {
			t.Run(isolation+" "+name, func(t *testing.T) {
				program, sleeper := []string{"linger"}, []string{"sleep", "600"}
				if isolation == process.IsolationNone {
					dir, _ := imageDir()
					demo := filepath.Join(dir, "demo")
					program, sleeper = []string{demo, "linger"}, []string{demo, "sleep", "600"}
				}
				w := open(t, func(c *process.Config) {
					if isolation != "" {
						c.Isolation, c.RuntimePath = isolation, ""
					}
				})
				id := w.run("main", nil, sleeper...)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				s, ended := newSession(terminal), make(chan error, 1)
				go func() { ended <- w.StreamExec(ctx, id, program, s) }()
				w.until("three generations", func() bool { return strings.Contains(s.stdout.String(), "lingering 0") })
				if n := w.lingering(id); n != 3 {
					t.Fatalf("%d processes of the command run, want 3", n)
				}
				leave()
				if err := <-ended; err == nil {
					t.Error("a session whose client has gone: got no error")
				}
				if n := w.lingering(id); n != 0 {
					t.Errorf("%d processes of the command run, and its session has ended", n)
				}
			})
		}
	}
}

// A disconnected client is detected even if the command has not read all input.
func TestSecurityE12CommandThatReadsNothingEndsWithItsClient(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	s, ended := newSession(false), make(chan error, 1)
	go func() { ended <- w.StreamExec(ctx, id, []string{"linger"}, s) }()
	w.until("three generations", func() bool { return strings.Contains(s.stdout.String(), "lingering 0") })
	typed := make(chan struct{})
	go func() {
		defer close(typed)
		for range 64 {
			if _, err := s.typed.Write(make([]byte, 32<<10)); err != nil {
				return
			}
		}
	}()
	select {
	case <-typed:
		t.Error("2 MiB went to a command that reads nothing")
	case <-time.After(time.Second): // nothing signals that the command is stuck
	}
	leave()
	<-ended //nolint:errcheck // how it ended does not matter
	if n := w.lingering(id); n != 0 {
		t.Errorf("%d processes of the command run, and its session has ended", n)
	}
	s.stdin.Close()
	<-typed
}

// A command may end and leave a process that continues to write. That process must not block the session of a
// disconnected client, such as a probe.
func TestSecurityE12CommandThatLeavesAWriterEnds(t *testing.T) {
	w := open(t, nil)
	id := w.run("main", shell, "/busybox", "sleep", "600")
	ended := make(chan error, 1)
	go func() {
		_, _, err := w.ExecSync(t.Context(), id, []string{"/busybox", "sh", "-c", "(while :; do echo x; /busybox sleep 0.05; done) &"}, 2*time.Second)
		ended <- err
	}()
	select {
	case err := <-ended:
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v, want an error that the time is over", err)
		}
	case <-time.After(25 * time.Second): // less than the time after which the session gives up
		t.Error("the command holds its session")
	}
}

// lingering counts the processes named linger in a container. It looks at the processes of the machine or of the
// sandbox.
func (w *world) lingering(id string) (n int) {
	w.t.Helper()
	if w.config.Isolation == process.IsolationGVisor {
		names, _, err := w.ExecSync(w.t.Context(), id, []string{"ls", "/proc"}, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, name := range strings.Fields(string(names)) {
			if strings.Trim(name, "0123456789") != "" {
				continue
			}
			line, _, _ := w.ExecSync(w.t.Context(), id, []string{"cat", "/proc/" + name + "/cmdline"}, 0) // it may have ended
			if strings.HasPrefix(string(line), "linger") {
				n++
			}
		}
		return n
	}
	for _, pid := range below(w.config.StateDir, id) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && strings.Contains(string(line), "linger") {
			n++
		}
	}
	return n
}
