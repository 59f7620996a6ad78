// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTime is the time after which a program that does not stop is killed.
const stopTime = 20 * time.Second

// program is a program with the lifetime of the cluster. Its output is in a file of its name.
type program struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // read after ended
}

// start starts a program in the background; it ends with the cluster.
func (c *Cluster) start(name, path string, args ...string) (*program, error) {
	log, err := os.Create(filepath.Join(c.Logs, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }()                                                      // the program has it too
	p := &program{name: name, cmd: exec.Command(path, args...), ended: make(chan struct{})} //nolint:noctx // stop ends it
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal from the terminal is for us alone
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	c.programs = append(c.programs, p)
	return p, nil
}

func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTime):
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	return fmt.Errorf("stop %s: it did not end within %s and was killed", p.name, stopTime)
}

// awaitAnswer polls a condition until it is true. It also ends when a program ends.
func (c *Cluster) awaitAnswer(ctx context.Context, what string, limit time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		for _, p := range c.programs {
			select {
			case <-p.ended:
				return fmt.Errorf("wait for %s: %s has ended: %w; see %s.log", what, p.name, errors.Join(p.err, err), p.name)
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// runKubectl runs kubectl as the cluster's administrator and returns its output.
func (c *Cluster) runKubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
