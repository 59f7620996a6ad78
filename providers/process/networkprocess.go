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

// networkProcess is the process that runs the network of the pods. Like the supervisors of containers, it
// outlives the daemon.
type networkProcess struct {
	// program is the path of runsc, which runs the process as a subcommand.
	program string
	// socket is the path of its socket, record of the file that identifies the process, and log of its output.
	socket, record, log string
	// cgroups is the parent of its control group.
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

// networkMemory is the memory limit of the network process.
const networkMemory = 512 << 20

// sendConfig sends the process its configuration. It starts a new process if the process is missing or does not
// answer correctly, but not if the caller gave up.
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

// isBroken reports whether an error means that the process does not answer correctly. Other errors, such as too
// many open files in the daemon, have other causes.
func isBroken(err error) bool {
	for _, kind := range []error{syscall.ENOENT, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.ErrUnexpectedEOF, io.EOF, os.ErrDeadlineExceeded, podnet.ErrVersion} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// gaveUp reports whether a caller has stopped waiting. It compares the deadline, too: an operation with the same
// deadline may time out before ctx.Err is set.
func gaveUp(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// start starts the process with a listening socket, so clients can connect and wait before it answers.
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
	// Do not use CommandContext: the process outlives the daemon.
	cmd := &exec.Cmd{
		Path: p.program, Args: []string{p.program, "podnet", "serve"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Stdout: output, Stderr: output, ExtraFiles: []*os.File{socket}, SysProcAttr: shim.Detached(),
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the network process: %w", err)
	}
	oomscore.Restore(cmd.Process.Pid)
	process := shim.ProcessOf(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // clients notice the end by their connections
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
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime) // wait for the killed process even if the caller gave up
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

// newNetworkProcess returns the network process of this daemon. Its socket is in memoryDir, where paths are short
// enough.
func (r *Runtime) newNetworkProcess(program string) *networkProcess {
	memory := filepath.Dir(r.oci.bundles)
	return &networkProcess{
		program: program, socket: filepath.Join(memory, networkSocket), record: filepath.Join(memory, networkPID),
		log: filepath.Join(r.config.StateDir, networkLog), cgroups: &r.cgroups, name: "network-" + filepath.Base(memory),
	}
}
