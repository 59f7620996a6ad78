// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// nullCommand makes this program the null agent.
const nullCommand = "null-agent"

// nullAgent is the least that a program can do: see runNull.
type nullAgent struct{}

func (nullAgent) name() string { return "null" }

func (nullAgent) settings() string {
	return "one watch, two status patches and one delete per pod, and nothing else; no leases"
}

func (a nullAgent) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{nullCommand, m.kubeconfig}
	if s.Nodes == 1 {
		args = append(args, prefix)
	}
	if err := m.makeNodes(ctx, s.nodeNames(prefix), nil); err != nil {
		return nil, err
	}
	says, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer says.Close()
	cmd := exec.Command(self, args...) //nolint:noctx // it is ended by stop, gently
	cmd.ExtraFiles = []*os.File{theirs}
	p, err := start(a.name(), cmd, m.cfg.logs)
	_ = theirs.Close() // or the end of the child would not be the end of the pipe
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if !saysReady(says) {
		_ = cmd.Process.Kill() // it is usually gone already
		return nil, p.lost()
	}
	return p, nil
}
