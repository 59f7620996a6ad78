// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerrpc"
)

func typesUID(s string) types.UID { return types.UID(s) }

func options(socket string, listening func()) providerrpc.Options {
	return providerrpc.Options{Socket: socket, Name: "mock", Listening: func(net.Addr) { listening() }}
}

// begun returns a connected plugin without running background work.
func begun(t *testing.T, config Config) (*plugin, error) {
	t.Helper()
	if config.StartTimeout == (metav1.Duration{}) {
		config.StartTimeout.Duration = 10 * time.Second
	}
	p, err := newPlugin(testNode(), config)
	if err != nil {
		return nil, err
	}
	p.every, p.patience, p.retry = 20*time.Millisecond, 2*time.Second, 5*time.Millisecond
	return p, p.start(t.Context())
}

// process is a plugin in a separate process.
type process struct {
	t      *testing.T
	socket string
	folder string // "": the plugin is the provider mock
	cmd    *exec.Cmd
}

// startProcess serves the provider mock from another process.
func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, socket: shortDir(t) + "/s"}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) endpoint() string { return "unix://" + p.socket }

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), pluginSocket+"="+p.socket, pluginFolder+"="+p.folder)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if line := bufio.NewScanner(out); !line.Scan() {
		p.t.Fatal("the plugin does not listen")
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// freeze stops the process, and returns when none of its threads runs. A running thread could still answer.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, "all threads of the plugin have stopped", func() bool {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, file := range files {
			stat, err := os.ReadFile(file)
			if _, rest, ok := strings.Cut(string(stat), ") "); err != nil || !ok || rest[0] != 'T' {
				return false
			}
		}
		return err == nil
	})
}

// kill kills the process with SIGKILL.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
