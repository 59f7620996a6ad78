// SPDX-License-Identifier: Apache-2.0

//go:build linux

package kip

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine/machinetest"
)

// hostName makes a test process a machine: it then runs the agent and the pod.
const hostName = "kip-test"

func init() {
	podjob.Main(hostName, func(args []string) error {
		data, err := os.ReadFile(filepath.Join(args[0], "user-data"))
		if err != nil {
			return err
		}
		told, err := cell.ParseUserData(data)
		if err != nil {
			return err
		}
		l, err := net.FileListener(os.NewFile(3, "listener"))
		if err != nil {
			return err
		}
		a, err := cell.NewAgent(cell.AgentConfig{
			UserData: told, Dir: filepath.Join(args[0], "agent"), Version: "test", Run: podjob.Run, PowerOff: func(string) {}, Job: podjob.Config{LookEvery: time.Minute, Machine: "127.0.0.1", WriteDNS: true},
		})
		if err != nil {
			return err
		}
		return a.Serve(context.Background(), l)
	})
}

// processes is a cloud that runs machines as child processes.
type processes struct {
	dir   string
	cloud *machinetest.Cloud

	mu   sync.Mutex
	pids map[string]int // guarded by mu; keyed by the ID of the machine
}

// newProcesses returns a cloud of processes, with their files below a new directory.
func newProcesses() (*processes, error) {
	dir, err := os.MkdirTemp("", "kip-") // paths of sockets must be short
	if err != nil {
		return nil, err
	}
	p := &processes{dir: dir, pids: map[string]int{}}
	p.cloud = machinetest.New(p.boot)
	return p, nil
}

func (p *processes) boot(id string, spec machine.Spec) (b machinetest.Booted, err error) {
	dir := filepath.Join(p.dir, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return b, err
	}
	if err := os.WriteFile(filepath.Join(dir, "user-data"), spec.UserData, 0o600); err != nil {
		return b, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return b, err
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		return b, err
	}
	defer file.Close()
	console, err := os.Create(filepath.Join(dir, "console"))
	if err != nil {
		return b, err
	}
	defer console.Close()
	cmd := exec.Command("/proc/self/exe", enter.Marker, enter.ModeRun, hostName, dir)
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr, cmd.Dir = []*os.File{file}, console, console, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return b, err
	}
	p.mu.Lock()
	p.pids[id] = cmd.Process.Pid
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		p.mu.Lock()
		delete(p.pids, id)
		p.mu.Unlock()
		close(ended)
		p.cloud.Terminate(id, "PoweredOff")
	}()
	return machinetest.Booted{Address: l.Addr().String(), IP: "127.0.0.1", End: func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}}, nil
}

// pid returns the process ID of a machine, or 0 if the machine does not run.
func (p *processes) pid(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pids[id]
}

// status returns the last status that a machine reported for its pod.
func (p *processes) status(id string) (s podjob.Status) {
	data, err := os.ReadFile(filepath.Join(p.dir, id, "agent", "status.json"))
	if err == nil {
		_ = json.Unmarshal(data, &s)
	}
	return s
}

// close ends all machines.
func (p *processes) close() {
	p.cloud.Close()
	_ = os.RemoveAll(p.dir)
}
