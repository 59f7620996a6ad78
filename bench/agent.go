// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// agentNames are the agents for comparisons. There is this project's, KWOK, and a minimal program. There is this
// project's agent in several processes, with a provider in a process of its own, with a second cluster as its
// backend, and with Liqo in that cluster, with Liqo's own agent beside it. There is this project's agent with
// Nomad, Slurm and interLink's server below it, with interLink's own beside the last one, with the emulator of
// each cloud, with a machine for each pod, and with each container runtime. With containers there is a kubelet, too.
var agentNames = []string{"ours", "kwok", "kwok-parallel", "null", "shared", "plugin", "tensilekube", "liqo", "liqo-vk", "nomad", "slurm", "interlink", "interlink-vk", "aci", "eci", "fargate", "fargate-push", "stackpath", "zun", "azurebatch", "kip", "kip-cold", "kip-standby", "gvisor", "runc", "before", "cri", "kubelet"}

// suitsAgent reports whether an agent is part of the scenario.
func (s scenario) suitsAgent(agent string) bool {
	switch agent {
	case "ours":
		return !s.Runtimes && !s.Liqo && s.Backend == ""
	case "gvisor", "runc", "cri":
		return s.Runtimes
	case "before":
		return s.Runtimes || !s.Containers && !s.Wire && !s.Replicas && !s.Remote && s.Backend == ""
	case "kubelet":
		return s.Containers
	case "shared":
		return s.Replicas
	case "plugin":
		return s.Wire
	case "tensilekube":
		return s.Remote && !s.Liqo
	case "liqo", "liqo-vk":
		return s.Liqo
	case "nomad", "slurm", "interlink", "aci", "eci", "fargate", "stackpath", "zun", "azurebatch", "kip":
		return s.Backend == agent
	case "kip-cold", "kip-standby":
		return s.Backend == "qemu"
	case "fargate-push":
		return s.Backend == "fargate"
	case "interlink-vk":
		return s.Backend == "interlink"
	}
	return s.Backend == "" && !s.Containers && !s.Wire && !s.Replicas && !s.Remote
}

// agent is a program for the pods of nodes. It is started as a child process and measured from outside, for
// comparisons of any such program.
type agent interface {
	agentName() string
	// describeSettings returns the report's text about the settings of the agent.
	describeSettings() string
	// start starts the program and returns when its nodes are ready.
	start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error)
}

// errCannot is the error of an agent that is not part of a scenario.
var errCannot = errors.New("this agent cannot do that")

// newAgent returns the agent of that name, with its program built.
func newAgent(ctx context.Context, cfg config, name string) (agent, error) {
	switch name {
	case "kwok", "kwok-parallel":
		return newKWOK(ctx, cfg, name)
	case "null":
		return nullAgent{}, nil
	case "kubelet":
		return newKubelet(ctx, cfg)
	}
	o := ours{program: filepath.Join(cfg.bin, "virtual-kubelet"), args: cfg.args, profile: cfg.profile}
	if cfg.profile != "" {
		var err error
		if o.program, err = buildProfiled(ctx, cfg); err != nil {
			return nil, err
		}
	}
	switch name {
	case "plugin":
		return plugged{o}, nil
	case "shared":
		return shared{&o}, nil
	case "tensilekube":
		o.as = name
		return onRemote{&o}, nil
	case "liqo", "liqo-vk":
		return newOnLiqo(&o, cfg, name)
	case "nomad":
		return newOnNomad(&o, cfg)
	case "slurm":
		return newOnSlurm(&o)
	case "interlink", "interlink-vk":
		return newOnInterLink(&o, cfg, name)
	case "aci", "eci", "fargate", "fargate-push", "stackpath", "zun", "azurebatch", "kip":
		return newOnCloud(ctx, &o, cfg, name)
	case "kip-cold", "kip-standby":
		return newOnQEMU(&o, cfg, name)
	case "cri":
		o.as = name
		return onCRI{&o}, nil
	case "gvisor", "runc":
		return newOnProcess(&o, name), nil
	case "before":
		o.program, o.profile = cfg.before, ""
		return newBefore(o), nil
	}
	return &o, nil
}

// ours is this project's agent, with pods that start and stop at once.
type ours struct {
	as      string // its name; "": ours
	program string
	args    []string
	profile string // "": none
}

func (o *ours) agentName() string { return cmp.Or(o.as, "ours") }

func (o *ours) describeSettings() string {
	settings := "virtual-kubelet --provider=mock, --provider=cri where there are containers; all else by default"
	if len(o.args) > 0 {
		settings += ", but " + strings.Join(o.args, " ")
	}
	return settings
}

// providerArgs selects the provider. All other settings have the defaults that users get.
func (o *ours) providerArgs(m *machine, s scenario, prefix string) ([]string, error) {
	if s.Containers {
		return m.criArgs(prefix)
	}
	return []string{"--provider=mock"}, nil
}

func (o *ours) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	args, err := o.providerArgs(m, s, prefix)
	if err != nil {
		return nil, err
	}
	return o.startWith(ctx, m, s, prefix, args)
}

// startWith starts the program with arguments, and variables, of the provider.
func (o *ours) startWith(ctx context.Context, m *machine, s scenario, prefix string, args []string, env ...string) (*process, error) {
	args = append(args, "--kubeconfig="+m.kubeconfig, "--node-ip=127.0.0.1")
	if s.Nodes > 1 {
		if !o.hasFleets(ctx) {
			return nil, fmt.Errorf("%w: virtual-kubelet has no flag --nodes", errCannot)
		}
		args = append(args, "--nodes="+s.nodePattern(prefix), "--disable-kubelet-api")
	} else {
		creds, err := m.makeCredentials(ctx, prefix)
		if err != nil {
			return nil, err
		}
		args = append(args, "--nodename="+prefix, "--listen-address=127.0.0.1", "--port=0",
			"--tls-cert-file="+creds.cert, "--tls-private-key-file="+creds.key, "--client-ca-file="+creds.rootCA)
	}
	args = append(args, o.args...)
	cmd := exec.Command(o.program, args...) //nolint:noctx // it is ended by stop, gently
	cmd.Env = append(cmd.Environ(), env...)
	if o.profile != "" {
		cmd.Env = append(cmd.Env, profileVariable+"="+filepath.Join(o.profile, prefix))
	}
	return m.startNodes(ctx, o.agentName(), cmd, s.nodeNames(prefix))
}

// hasFleets reports whether the program can run several nodes.
func (o *ours) hasFleets(ctx context.Context) bool {
	out, _ := exec.CommandContext(ctx, o.program, "--help").CombinedOutput()
	return strings.Contains(string(out), "--nodes ")
}

// startNodes starts the program and returns when all nodes are ready.
func (m *machine) startNodes(ctx context.Context, name string, cmd *exec.Cmd, nodes []string) (*process, error) {
	if m.accounts != nil {
		if err := m.accounts.startInGroup(cmd, nodes[0]); err != nil {
			return nil, err
		}
	}
	p, err := startProgram(name, cmd, m.cfg.logs)
	if err != nil {
		return nil, err
	}
	if m.accounts != nil {
		p.account = m.accounts.accountOf(nodes[0], containerdGroup)
	}
	if err := m.awaitReady(ctx, nodes, p); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}
