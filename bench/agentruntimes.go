// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// onProcess is this project's agent with provider process and one of its kinds of isolation.
type onProcess struct {
	*ours
	isolation string
}

// newOnProcess returns the agent of that name. The name is its isolation.
func newOnProcess(o *ours, name string) agent {
	o.as = name
	return onProcess{o, name}
}

func (p onProcess) describeSettings() string {
	return "virtual-kubelet --provider=process, isolation: " + p.isolation
}

// processConfig sets paths only; all other settings are the defaults.
const processConfig = `apiVersion: process.virtual-kubelet.io/v1alpha1
kind: ProcessProviderConfiguration
stateDir: %[1]s/state
images: [%[2]s]
cgroupParent: %[3]s
isolation: %[4]s
`

func (p onProcess) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	dir := filepath.Join(m.base, "process", prefix)
	file := filepath.Join(dir, "process.yaml")
	if err := writeConfig(file, fmt.Sprintf(processConfig, dir, m.images, m.accounts.podsGroup(prefix), p.isolation)); err != nil {
		return nil, err
	}
	node, err := p.startWith(ctx, m, s, prefix, []string{"--provider=process", "--provider-config=" + file})
	if err == nil {
		node.account = m.accounts.accountOf(prefix) // it has nothing to do with containerd
	}
	return node, err
}

// onCRI is this project's agent with provider cri, beside others of its providers.
type onCRI struct{ *ours }

func (onCRI) describeSettings() string {
	return "virtual-kubelet --provider=cri, with containerd and runc, which are counted with it"
}
