// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/podnet"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// networkProcess is the process with the network of the pods. Like the supervisors of containers, it outlives
// the daemon.
type networkProcess struct {
	// program is runsc, which has the process as a command.
	program string
	// socket is its socket, record identifies the process, and log has its output.
	socket, record, log string
	// cgroups are the parents of its control group.
	cgroups *cgroups
	// name is the name of the control group.
	name string
}

// The files of the network process.
const (
	networkSocket = "network"
	networkPID    = "network.pid"
	networkLog    = "network.log"
)

// networkMemory bounds the memory of the network process.
const networkMemory = 512 << 20

// sendConfig sends the process its configuration. It replaces a process that is missing, or that answers wrongly,
// but not because the caller gave up.
func (p *networkProcess) sendConfig(ctx context.Context, config podnet.Config) (*podnet.Connection, error) {
	err := podnet.CheckVersion(ctx, p.socket)
	if err == nil {
		return podnet.Configure(ctx, p.socket, config)
	}
	if gaveUp(ctx) || !isBroken(err) {
		return nil, err
	}
	if err := p.end(ctx); err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	connection, err := podnet.Configure(ctx, p.socket, config)
	if err != nil && gaveUp(ctx) {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w; its log: %s", err, shim.Tail(p.log)), p.end(context.WithoutCancel(ctx)))
	}
	return connection, nil
}

// isBroken reports whether an error says that no process answers correctly. Another error, such as too many open
// files in the daemon, says nothing about the process.
func isBroken(err error) bool {
	for _, kind := range []error{syscall.ENOENT, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF, os.ErrDeadlineExceeded, podnet.ErrVersion} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// gaveUp reports whether a caller has stopped waiting. An operation with the same deadline may see it earlier
// than the context does.
func gaveUp(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// start starts the process with a socket that listens already: clients wait until it answers.
func (p *networkProcess) start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unixpacket", p.socket)
	if err != nil {
		return fmt.Errorf("listen for the network process: %w", err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	defer listener.Close()
	socket, err := listener.(*net.UnixListener).File()
	if err != nil {
		return err
	}
	defer socket.Close()
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	group, err := p.cgroups.makeGroup(p.name, &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: networkMemory})
	if err != nil {
		return fmt.Errorf("make the cgroup of the network process: %w", err)
	}
	// CommandContext does not fit: the process outlives the daemon.
	cmd := &exec.Cmd{
		Path: p.program, Args: []string{p.program, "podnet", "serve"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Stdout: output, Stderr: output, ExtraFiles: []*os.File{socket}, SysProcAttr: shim.Detached(),
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the network process: %w", err)
	}
	oomscore.Restore(cmd.Process.Pid)
	process := shim.ProcessOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // connected clients see the end of the process
	err = group.Add(process.PID)
	if errors.Is(err, syscall.ESRCH) {
		err = nil // the process has ended, and its log has the reason
	}
	if err := errors.Join(err, durable.WriteJSON(p.record, process)); err != nil {
		return errors.Join(fmt.Errorf("start the network process: %w", err), shim.KillProcess(process))
	}
	return nil
}

// end ends the process, if there is one.
func (p *networkProcess) end(ctx context.Context) error {
	var process shim.Process
	if err := durable.ReadJSON(p.record, &process); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if process.Alive() {
		if err := shim.KillProcess(process); err != nil {
			return fmt.Errorf("end the network process: %w", err)
		}
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime) // a killed process ends even if no caller waits for the end
		defer cancel()
		if err := shim.WaitGone(waiting, process); err != nil {
			return fmt.Errorf("end the network process: %w", err)
		}
	}
	var errs []error
	for _, path := range []string{p.socket, p.record} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, p.cgroups.groupOf(p.name).Remove())...)
}

// newNetworkProcess returns the network process of this daemon. Its socket is in memory, where paths are short.
func (r *Runtime) newNetworkProcess(program string) *networkProcess {
	memory := filepath.Dir(r.oci.bundles)
	return &networkProcess{
		program: program, socket: filepath.Join(memory, networkSocket), record: filepath.Join(memory, networkPID),
		log: filepath.Join(r.config.StateDir, networkLog), cgroups: &r.cgroups, name: "network-" + filepath.Base(memory),
	}
}
