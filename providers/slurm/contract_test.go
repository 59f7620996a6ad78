// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/jsonfile"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podjobtest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

// TestContract runs the contract of providers on a real Slurm.
func TestContract(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{})
	h := podjobtest.Harness(t)
	h.Backend = func(_ context.Context, env providertest.Env) (*providertest.Backend, error) { return backend(c, env) }
	h.Parallel = 8
	h.Subject = providertest.Subject{Provider: "slurm", Backend: "Slurm 22.05 with two nodes on one machine; containers are programs of it, as root"}
	h.Except = map[string]string{
		"settings/limits": "the cgroups of Slurm keep limits, and this cluster has none; TestSubmission has what is asked for",
		"exec/terminal":   "a command in a job has no terminal; TestTerminalIsRefused",
		"stats/summary":   "what jobs use is in Slurm's accounting; TestStatisticsAreOfNoPod",
	}
	h.Unproven = map[capability.Feature]string{
		capability.ContainerLimits: "the cgroups of Slurm keep them, and this cluster has none",
		capability.HostPorts:       "a container has the ports of the job's node; port-forward/both-ways connects with one there",
		capability.TokenVolumes:    "no check of the contract has tokens; TestSecretsStayInFiles reads one in a job",
	}
	providertest.Run(t, h)
}

// testConfig returns the configuration of a provider on a test cluster.
func testConfig(c *slurmtest.Cluster, cluster string) Config {
	return Config{
		ClusterName: cluster, SharedDir: c.Shared, SlurmConf: c.Conf,
		FastEvery: metav1.Duration{Duration: 300 * time.Millisecond}, SlowEvery: metav1.Duration{Duration: 2 * time.Second},
	}
}

// backend returns Slurm as the backend of one check.
func backend(c *slurmtest.Cluster, env providertest.Env) (*providertest.Backend, error) {
	bin, err := os.MkdirTemp(c.Dir, "bin-")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"sbatch", "squeue", "scancel", "sinfo", "srun"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(fmt.Sprintf(wrapper, bin, name)), 0o700); err != nil { //nolint:gosec // it is a program
			return nil, err
		}
	}
	config := testConfig(c, env.Namespace)
	config.BinDir = bin
	client := client{conf: c.Conf}
	of := func(pod *corev1.Pod) ([]queued, error) {
		all, err := client.jobs(context.Background(), "--name="+jobName(pod.UID))
		var live []queued
		for _, q := range all {
			if ended[q.State] == "" && q.State != "COMPLETING" {
				live = append(live, q)
			}
		}
		return live, err
	}
	set := func(name string, on bool) {
		if on {
			_ = os.WriteFile(filepath.Join(bin, name), nil, 0o600)
		} else {
			_ = os.Remove(filepath.Join(bin, name))
		}
	}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			config, err := config.complete()
			if err != nil {
				return nil, err
			}
			d, err := newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, config)
			if err != nil {
				return nil, err
			}
			d.settle = 2 * time.Second
			return d.provider, nil
		},
		Instances: func(pod *corev1.Pod) (int, error) {
			live, err := of(pod)
			var said podjob.Status
			if jsonfile.Read(filepath.Join(c.Shared, env.Namespace, env.Node.Name, string(pod.UID), job.StatusFile), &said) == nil && said.Ended {
				return 0, err // the job is about to end, and runs no process
			}
			return len(live), err
		},
		Kept: map[string]providertest.Kept{"files": {Most: 1, Rule: "the lock of the directory, one for a node"}},
		Left: func() (map[string][]string, error) {
			files, err := providertest.FilesBelow(filepath.Join(c.Shared, env.Namespace))
			if err != nil {
				return nil, err
			}
			all, err := client.jobs(context.Background(), "--me")
			left := map[string][]string{"files": files}
			for _, q := range all {
				if ended[q.State] == "" && strings.Contains(q.Comment, env.Namespace) {
					left["jobs"] = append(left["jobs"], q.Comment)
				}
			}
			return left, err
		},
		Outage:     func(on bool) { set("outage", on) },
		LoseAnswer: func() { set("lose", true) },
		Lose:       func(pod *corev1.Pod) error { return killJob(string(pod.UID)) },
		Kill:       func(pod *corev1.Pod, _ string) error { return killContainer(string(pod.UID)) },
	}, nil
}

// killJob kills the process that supervises a pod. The containers of the pod end with it, and their exit codes
// stay unknown.
func killJob(uid string) error {
	pid, err := supervisor(uid)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// killContainer kills the only container of a pod by its first process: the child of the supervisor that runs
// the program of the contract.
func killContainer(uid string) error {
	pid, err := supervisor(uid)
	if err != nil {
		return err
	}
	return podjobtest.KillContainer(pid)
}

// supervisor returns the process that runs a pod in its job.
func supervisor(uid string) (int, error) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		data, _ := os.ReadFile(path)
		args := strings.Split(string(data), "\x00")
		if len(args) < 5 || args[1] != enter.Marker || args[2] != enter.ModeRun || !strings.HasSuffix(args[4], uid) {
			continue
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(path)))
	}
	return 0, fmt.Errorf("no job runs pod %s", uid)
}

// wrapper is a script in place of a Slurm command, which a test can break.
const wrapper = `#!/bin/sh
dir=%[1]s
if [ -e $dir/outage ]; then echo "%[2]s: error: Unable to contact slurm controller (connect failure)" >&2; exit 1; fi
if [ %[2]s = sbatch ] && [ -e $dir/lose ]; then
  rm $dir/lose; /usr/bin/%[2]s "$@" >/dev/null; echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1
fi
exec /usr/bin/%[2]s "$@"
`
