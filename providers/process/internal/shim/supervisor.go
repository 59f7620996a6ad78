// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
)

func init() {
	if len(os.Args) > 3 && os.Args[0] == Argv0 && os.Args[1] == holdMode {
		os.Exit(holdMain(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && os.Args[0] == Argv0 {
		os.Exit(shimMain(os.Args[1]))
	}
}

// holdMode makes a shim run holdMain.
const holdMode = "hold"

// buildMode makes a shim print its version.
const buildMode = "build"

// shimMain is the main function of a shim. Its working directory is the container's directory.
func shimMain(mode string) int {
	if mode == buildMode {
		fmt.Println(protocolVersion())
		return 0
	}
	ready := os.NewFile(3, "ready")
	syscall.CloseOnExec(3)
	err := superviseContainer(mode == "probe", ready)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	// Once the container runs, nobody reads this.
	_, _ = ready.WriteString(err.Error())
	return 1
}

// supervisor supervises one container.
type supervisor struct {
	spec     Spec
	log      *logFile
	children *children
	out      *broadcast
	stdin    *inlet
	main     streams
	commands commands
	// ending is true once the main process has ended. All other processes, including runtime commands, are killed
	// then.
	ending atomic.Bool
	// owned by superviseContainer until ended is closed
	state State
	ended chan struct{}
}

// superviseContainer starts the container, and returns when it has ended and is cleaned up.
func superviseContainer(probe bool, ready *os.File) error {
	s := &supervisor{children: newChildren(), out: newBroadcast(), ended: make(chan struct{})}
	if err := readSpec(&s.spec); err != nil {
		return err
	}
	defer s.children.stop()
	// Catch signals that a terminal or a service manager sends to the process group. Do not ignore them: the
	// container would inherit that.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	becomeReaper()
	if probe {
		return s.probeRuntime(ready)
	}
	var err error
	if s.log, err = openLog(s.spec.LogDir, s.spec.LogPath); err != nil {
		return err
	}
	_ = os.Remove(socketFile)
	listener, err := net.Listen("unix", socketFile) //nolint:noctx // a unix socket needs no name lookup
	if err != nil {
		return fmt.Errorf("listen for the daemon: %w", err)
	}
	status, err := s.startMain()
	if err != nil {
		s.recordFailure(err)
		return err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serveDaemon(listener)
	}()
	if _, err := ready.WriteString("ok"); err != nil {
		// The daemon was killed. The next daemon will find the container.
		fmt.Fprintln(os.Stderr, "report the start:", err)
	}
	ready.Close()
	err = s.finishContainer(<-status, listener)
	// Attached clients, and clients that run a command, get the final status before this process ends.
	select {
	case <-served:
	case <-time.After(readersTimeout):
	}
	return err
}

// readSpec reads the container's spec from the daemon.
func readSpec(spec *Spec) error {
	syscall.CloseOnExec(4)
	f := os.NewFile(4, "spec")
	defer f.Close()
	if err := json.NewDecoder(f).Decode(spec); err != nil {
		return fmt.Errorf("read the spec of the container: %w", err)
	}
	return nil
}

// startMain starts the main process, and records that in the state file.
func (s *supervisor) startMain() (<-chan syscall.WaitStatus, error) {
	// Write the state before the process exists: a daemon that finds no state may start the container again.
	s.state.Shim = Self()
	// Reserve disk space, so that the start and the end can be recorded even if the container fills the disk.
	if err := errors.Join(durable.KeepRoom(stateFile), durable.KeepRoomToBegin(stateFile)); err != nil {
		return nil, err
	}
	io, child, err := openStdio(s.spec.TTY, s.spec.Stdin)
	if err != nil {
		return nil, err
	}
	status, pid, err := s.launchMain(&io, child)
	child.close()
	if err != nil {
		io.close()
		return nil, err
	}
	s.main, s.stdin = io, &inlet{w: io.stdin}
	s.state.Init, s.state.StartedAt = ProcessOf(pid), time.Now()
	if err := durable.WriteBeginJSON(stateFile, s.state); err != nil {
		s.killAll()
		s.discardContainer()
		return nil, err
	}
	io.copyOutput(s.writeOutput)
	return status, nil
}

// writeOutput writes the container's output to its log and to attached clients.
func (s *supervisor) writeOutput(stream string, p []byte) {
	s.log.write(stream, p, time.Now())
	k := frameStdout
	if stream == "stderr" {
		k = frameStderr
	}
	s.out.sendFrame(k, p)
}

// recordFailure records that the process could not be started.
func (s *supervisor) recordFailure(err error) {
	now := time.Now()
	s.state.FinishedAt, s.state.ExitCode, s.state.Reason, s.state.Message = now, 128, "StartError", err.Error()
	s.state.StartedAt = time.Unix(0, 0)
	if err := durable.WriteLastJSON(stateFile, s.state); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// finishContainer ends the remaining processes, and then records the end of the container.
func (s *supervisor) finishContainer(status syscall.WaitStatus, listener net.Listener) error {
	finished := time.Now()
	s.ending.Store(true)
	if s.isSandboxed() && s.spec.OCI.ID != s.spec.OCI.Sandbox {
		s.discardContainer() // the runtime ends remaining processes in the sandbox
	}
	s.killAll()
	s.main.drainOutput()
	for _, stream := range []string{"stdout", "stderr"} {
		s.log.endStream(stream, time.Now())
	}
	s.state.FinishedAt, s.state.ExitCode = finished, exitCode(status)
	if s.state.ExitCode == killedCode && s.spec.Cgroup.OOMKilled() {
		s.state.Reason = "OOMKilled"
	}
	if s.state.Reason == "" {
		s.state.Reason, s.state.Message = s.fateOfSandbox()
	}
	if s.isSandboxed() && s.spec.OCI.ID == s.spec.OCI.Sandbox && s.state.Reason == "" && s.spec.Cgroup.Refused() {
		s.state.Message = "the pod has as many processes and threads as it may, and was refused one more" // gVisor ends if a fork is refused
	}
	s.discardContainer()
	err := durable.WriteLastJSON(stateFile, s.state)
	close(s.ended)
	s.out.endClients(done{ExitCode: s.state.ExitCode})
	return errors.Join(err, listener.Close(), s.spec.Cgroup.Remove())
}

// killNow kills every process of the container, and returns after their end. With a runtime it does not kill all
// descendants of the supervisor: they include the runtime commands that clean up.
func (s *supervisor) killNow(sandbox bool) {
	if s.spec.OCI == nil {
		s.killAll()
		return
	}
	if sandbox && s.isSandboxed() {
		s.killSandbox()
	}
	_ = KillProcess(s.state.Init) // for gVisor, Init is the file server, and the runtime kills a container without one
	if !s.isSandboxed() {
		s.spec.Cgroup.Kill()
	}
	<-s.ended
}

// killAll kills every process of the container, and returns after their end.
func (s *supervisor) killAll() {
	_ = KillProcess(s.state.Init)
	s.spec.Cgroup.Kill() // first, because a search may not keep up with a fork bomb
	killDescendants(s.children)
	s.spec.Cgroup.Kill()
}

// killedCode is the exit code of a process that was killed by SIGKILL.
const killedCode = 128 + int(syscall.SIGKILL)

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
