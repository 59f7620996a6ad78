// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// onSlurm is this project's agent with provider slurm, and a private Slurm: a controller and one node. The Slurm
// and the jobs are not counted; the commands of Slurm that the agent calls are.
type onSlurm struct{ *ours }

// slurmCommands are the commands of provider slurm.
var slurmCommands = []string{"sbatch", "squeue", "scancel", "sinfo", "srun", "scontrol", "sacct"}

func newOnSlurm(o *ours) (agent, error) {
	o.as = "slurm"
	for _, program := range []string{"slurmctld", "slurmd", "munged", "sbatch", "squeue"} {
		if _, err := findProgram(program); err != nil {
			return nil, fmt.Errorf("slurm needs Slurm, as of Debian's packages slurm-client, slurmctld, slurmd and munge: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("slurm needs root: %w", os.ErrPermission)
	}
	return onSlurm{o}, nil
}

// findProgram also searches the folders of daemons.
func findProgram(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}

func (onSlurm) describeSettings() string {
	return "virtual-kubelet --provider=slurm, all else by default; a controller and one node of Slurm of Debian; CPU is with the commands that it calls"
}

// slurmProvider is the configuration of provider slurm.
const slurmProvider = `apiVersion: slurm.virtual-kubelet.io/v1alpha1
kind: SlurmProviderConfiguration
clusterName: bench
sharedDir: %[1]s/shared
slurmConf: %[1]s/slurm.conf
binDir: %[1]s/bin
capacity: {pods: 10k}
`

func (a onSlurm) start(ctx context.Context, m *machine, s scenario, prefix string) (*process, error) {
	c, err := startSlurm(ctx, m.cfg)
	if err != nil {
		return nil, fmt.Errorf("start Slurm: %w", err)
	}
	file := filepath.Join(c.dir, "provider.yaml")
	err = writeConfig(file, fmt.Sprintf(slurmProvider, c.dir))
	var node *process
	if err == nil {
		node, err = a.startWith(ctx, m, s, prefix, []string{"--provider=slurm", "--provider-config=" + file})
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	node.backend, node.children, node.program = c, true, []string{"/bin/bash", "-c", telling, "telling", filepath.Join(c.dir, "told")}
	return node, nil
}
