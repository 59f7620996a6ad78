// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout is long enough for a busy machine: a start usually takes three seconds.
const startTimeout = 3 * time.Minute

// failureTimeout is the time for a cluster to report the reason of its failed start.
const failureTimeout = 10 * time.Second

// cluster is a devcluster, running or ended, as a child of this process.
type cluster struct {
	binary, base, name string
	args               []string // of "devcluster up", in addition to the usual arguments
	options            Options
	port               string // of the API server, once known

	mu      sync.Mutex
	running *process // nil after a stop on purpose
}

// process is one start of a cluster.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer     // the end of stdin ends devcluster; the kernel closes stdin when this process dies
	stderr *bytes.Buffer // read after done
	done   chan struct{} // closed when the process has ended
	err    error         // read after done
}

func (c *cluster) dataDir() string { return filepath.Join(c.base, c.name) }

// openCluster starts the cluster for the first time.
func (c *cluster) openCluster() (*API, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	api, err := openAPI(filepath.Join(c.dataDir(), "kubeconfig"), c.dataDir())
	if err != nil {
		c.killProcess()
		return nil, err
	}
	server, err := url.Parse(api.Config.Host)
	if err != nil {
		c.killProcess()
		return nil, fmt.Errorf("parse the API server's address: %w", err)
	}
	c.port = server.Port()
	api.binary, api.cluster = c.binary, c
	return api, nil
}

// start starts the cluster and returns when a pod can be created. Later starts use the port of the
// first start, because clients know it.
func (c *cluster) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return errors.New("the cluster runs already")
	}
	args := append([]string{"up", "--dir=" + c.base, "--name=" + c.name, "--exit-with-stdin", "--progress-fd=3"}, c.args...)
	if c.port != "" {
		args = append(args, "--port="+c.port)
	}
	cmd := exec.Command(c.binary, args...) //nolint:noctx // a shared cluster outlives the test that starts it
	p := &process{cmd: cmd, stderr: new(bytes.Buffer), done: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	p.cmd.Env = append(os.Environ(), "GOGC=400") // a tenth of the time of its processors, for some hundred MiB
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	p.stdin = stdin
	progress, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer progress.Close()
	p.cmd.ExtraFiles = []*os.File{theirs}
	err = p.cmd.Start()
	_ = theirs.Close() // or the end of the child would not be the end of the pipe
	if err != nil {
		return fmt.Errorf("start %s: %w", c.binary, err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()

	timeout := time.AfterFunc(startTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timeout.Stop()
	if !awaitReady(progress) {
		// The process is about to end, and has still to write the reason; it is killed only if it hangs.
		hung := time.AfterFunc(failureTimeout, func() { _ = p.cmd.Process.Kill() })
		defer hung.Stop()
		<-p.done
		return p.exitError()
	}
	c.running = p
	return nil
}

// awaitReady reads devcluster's progress to the line "ready", and reports whether there was one.
func awaitReady(progress io.Reader) bool {
	lines := bufio.NewScanner(progress)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return true
		}
	}
	return false
}

// endReason returns the reason for the unexpected end of a cluster.
func (c *cluster) endReason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return nil
	}
	select {
	case <-c.running.done:
		return c.running.exitError()
	default:
		return nil
	}
}

func (p *process) exitError() error {
	said := strings.TrimSpace(p.stderr.String())
	if p.err == nil {
		return fmt.Errorf("devcluster ended: %s", said)
	}
	return fmt.Errorf("devcluster ended: %w: %s", p.err, said)
}

// endProcess ends the cluster with a signal and waits for it.
func (c *cluster) endProcess(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return
	}
	p := c.running
	c.running = nil
	_ = p.cmd.Process.Signal(s)               // an error means that the process is gone
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a paused process would not receive the signal
	<-p.done
	_ = p.stdin.Close()
}

func (c *cluster) killProcess() { c.endProcess(syscall.SIGKILL) }
