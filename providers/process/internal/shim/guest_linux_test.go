// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// keeps returns a supervisor of a container in a sandbox. Its runtime is a script with the variables LOG, PID,
// GUEST and STATE, which name the files of the call, and ARGS.
func keeps(t *testing.T, script string) *supervisor {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "runsc")
	text := `#!/bin/sh
STATE=` + filepath.Join(dir, "c_sandbox:s.state") + `
ARGS="$*"
while [ $# -gt 0 ]; do
	case $1 in
	--log) LOG=$2 ;;
	--pid-file) PID=$2 ;;
	--internal-pid-file) GUEST=$2 ;;
	esac
	shift
done
` + script + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	s := &supervisor{children: newChildren()}
	t.Cleanup(s.children.stop)
	s.spec.OCI = &OCI{Runtime: oci.Runtime{Program: program, Root: dir}, ID: "c", Sandbox: "s", Bundle: dir, Supervisor: t.TempDir()}
	s.spec.UID, s.spec.GID = uint32(os.Getuid()), uint32(os.Getgid()) //nolint:gosec // they are not negative
	return s
}

// runs begins the script of a container that was made and runs.
const runs = `echo 7 > $PID; echo '{"status": "running"}' > $STATE.new; mv $STATE.new $STATE; read go; `

// TestExitCodeIsTheContainersOwn checks that the exit code of the runtime counts only if the container ended. A
// runtime that crashes has an exit code too, but writes nothing to its log.
func TestExitCodeIsTheContainersOwn(t *testing.T) {
	for name, c := range map[string]struct {
		script, fails string
		code          int
		lost          bool
	}{
		"it ends":                     {script: runs + "rm $STATE; exit 3", code: 3},
		"it ends by a signal":         {script: runs + "rm $STATE; exit 143", code: 143},
		"it ends before anybody sees": {script: "echo 7 > $PID; exit 3", code: 3},
		"the runtime does not start":  {script: "exit 2", fails: "it ended with code 2"},
		"it fails":                    {script: `echo 7 > $PID; echo '{"level": "error", "msg": "no such program"}' > $LOG; exit 128`, fails: "no such program"},
		"its file server fails":       {script: `echo 7 > $PID; printf '{"level": "error", "msg": "no mount"}{"level": "error", "msg": "EOF"}' > $LOG; exit 128`, fails: "EOF: no mount"},
		"it crashes at the start":     {script: "echo 7 > $PID; touch $STATE; exit 2", fails: "it ended with code 2"},
		"it crashes":                  {script: runs + "exit 2", code: 137, lost: true},
		"it is killed":                {script: runs + "kill -9 $$", code: 137, lost: true},
		"it fails later":              {script: runs + `echo '{"level": "error", "msg": "no answer"}' > $LOG; rm $STATE; exit 128`, code: 137, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := keeps(t, c.script)
			out, child, err := openStdio(false, true)
			if err != nil {
				t.Fatal(err)
			}
			defer out.close()
			status, _, err := s.keepGuest(&out, child)
			child.close()
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want %s in it", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = out.stdin.WriteString("go\n") // an error means that the container has ended
			if code, lost := exitCode(<-status), s.commands.lost.Load() != nil; code != c.code || lost != c.lost {
				t.Errorf("it ended with code %d, lost %t; want %d, %t", code, lost, c.code, c.lost)
			}
		})
	}
}

// TestSignalThatEndsTheContainerIsNoError checks that a call that is killed together with its container is not
// an error.
func TestSignalThatEndsTheContainerIsNoError(t *testing.T) {
	s := keeps(t, "kill -9 $$")
	s.ended = make(chan struct{})
	if err := s.signalMain(syscall.SIGTERM); err == nil || !strings.Contains(err.Error(), "code 137") {
		t.Errorf("the container runs, and the call was killed: got %v", err)
	}
	s.ending.Store(true)
	done := make(chan error)
	go func() { done <- s.signalMain(syscall.SIGTERM) }()
	select {
	case err := <-done:
		t.Fatalf("the container has not ended yet: got %v", err)
	case <-time.After(100 * time.Millisecond): // nothing signals that it waits
	}
	close(s.ended)
	if err := <-done; err != nil {
		t.Errorf("the container has ended: got %v", err)
	}
}

// TestSandboxThatRunsHasNotEnded distinguishes two calls: one was killed alone, the other ended with its
// sandbox.
func TestSandboxThatRunsHasNotEnded(t *testing.T) {
	s := keeps(t, "")
	events := filepath.Join(t.TempDir(), "memory.events")
	s.spec.OCI.Group.V2 = filepath.Dir(events)
	sandbox := exec.CommandContext(t.Context(), "sleep", "600")
	if err := sandbox.Start(); err != nil {
		t.Fatal(err)
	}
	supervisor := State{Shim: Self(), Init: ProcessOf(sandbox.Process.Pid), StartedAt: sandboxStart}
	tell := func() {
		t.Helper()
		if err := durable.WriteJSON(filepath.Join(s.spec.OCI.Supervisor, stateFile), supervisor); err != nil {
			t.Fatal(err)
		}
	}
	tell()
	if reason, message := s.fateOfSandbox(); reason != "" || message != "" {
		t.Errorf("of a container that ended by itself: %s, %s", reason, message)
	}
	killed, crashed := syscall.WaitStatus(syscall.SIGKILL), syscall.WaitStatus(2<<8)
	for _, c := range []struct {
		status           syscall.WaitStatus
		oom, reason, how string
	}{
		{killed, "oom_kill 1", "OOMKilled", "by signal killed"}, {crashed, "oom_kill 1", Unknown, "with code 2"}, {killed, "oom_kill 0", Unknown, "by signal killed"},
	} {
		if err := os.WriteFile(events, []byte(c.oom+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if reason, message := s.fateOfCall(c.status); reason != c.reason || !strings.Contains(message, c.how) || strings.Contains(message, "sandbox") {
			t.Errorf("%v, %s, in a sandbox that runs: %s, %s", c.status, c.oom, reason, message)
		}
	}
	s.commands.lost.Store(&killed)
	s.commands.killed.Store(true)
	if reason, message := s.fateOfSandbox(); reason != "" || message != "" {
		t.Errorf("the sandbox was killed to end the container: %s, %s", reason, message)
	}
	s.commands.killed.Store(false)
	if reason, message := s.fateOfSandbox(); reason != Unknown || !strings.Contains(message, "by signal killed") {
		t.Errorf("the sandbox runs: %s, %s", reason, message)
	}
	_ = sandbox.Process.Kill()
	_ = sandbox.Wait()
	supervisor.FinishedAt, supervisor.Reason, supervisor.Message = sandboxStart, "OOMKilled", "as the supervisor says"
	tell()
	if reason, message := s.fateOfSandbox(); reason != "OOMKilled" || message != "the sandbox of the pod has ended: as the supervisor says" {
		t.Errorf("with its sandbox: %s, %s", reason, message)
	}
}

var sandboxStart = time.Unix(1, 0)

// TestCommandsThatHaveEndedAreForgotten checks that ended commands use no memory: a probe may run one each
// second for the life of a container.
func TestCommandsThatHaveEndedAreForgotten(t *testing.T) {
	s := keeps(t, "echo 9 > $GUEST; exit 4")
	s.spec.OCI.Config = []byte(`{"process": {}}`)
	near, far := net.Pipe()
	defer far.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, far) // until the other end is closed
	}()
	got := s.execCommand(&conn{Conn: near, frames: frames{w: near}, r: bufio.NewReader(near)}, request{Argv: []string{"probe"}})
	near.Close()
	<-read
	if got.ExitCode != 4 || got.Error != "" {
		t.Errorf("the command: got %+v", got)
	}
	if len(s.commands.pid) != 0 {
		t.Errorf("commands that have ended are known: %v", s.commands.pid)
	}
}

// TestSandboxIsKilledToEndItsContainer checks that only a running sandbox is recorded as killed: a sandbox that
// ended by itself has another reason.
func TestSandboxIsKilledToEndItsContainer(t *testing.T) {
	s := keeps(t, "")
	pid, ended := sleeper(t)
	supervisor := State{Shim: Self(), Init: ProcessOf(pid), StartedAt: sandboxStart, FinishedAt: sandboxStart}
	for _, running := range []bool{false, true} {
		if running {
			supervisor.FinishedAt = time.Time{}
		}
		if err := durable.WriteJSON(filepath.Join(s.spec.OCI.Supervisor, stateFile), supervisor); err != nil {
			t.Fatal(err)
		}
		s.killSandbox()
		if got := s.commands.killed.Load(); got != running {
			t.Errorf("a sandbox that runs %v: killed %v", running, got)
		}
	}
	<-ended
}
