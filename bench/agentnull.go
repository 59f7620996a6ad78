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

// nullAgent is a minimal program: see runNull.
type nullAgent struct{}

func (nullAgent) agentName() string { return "null" }

func (nullAgent) describeSettings() string {
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
	cmd := exec.Command(self, args...) //nolint:noctx // it is ended by stop, gently
	return m.startReady(ctx, a.agentName(), cmd)
}
