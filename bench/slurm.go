// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// slurm is a Slurm with one node for pods.
type slurm struct {
	dir     string
	daemons []*process // in the order in which they were started
}

// slurmConf is slurm.conf. The node claims room for all pods, and has much time for their starts: by default the
// controller ends a job after 10 s if the job's node does not know it.
const slurmConf = `ClusterName=bench
SlurmctldHost=localhost
SlurmctldPort=%[2]d
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[1]s/control
SlurmctldPidFile=%[1]s/control.pid
SlurmdPidFile=%[1]s/node.pid
SlurmdSpoolDir=%[1]s/spool
SlurmctldLogFile=%[1]s/control.log
SlurmdLogFile=%[1]s/node.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0,default_queue_depth=1000
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MinJobAge=900
BatchStartTimeout=300
CommunicationParameters=NoCtldInAddrAny
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=%[3]d CPUs=1024 RealMemory=4000000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// counting is the text of a command that records its call.
const counting = `#!/bin/bash
printf '%%s %%s\n' "$EPOCHREALTIME" %[1]s >>%[2]s/calls
exec %[3]s "$@"
`

// startSlurm starts a Slurm, and returns when its node accepts jobs. Its folder is not in /tmp, because jobs
// have a different /tmp.
func startSlurm(ctx context.Context, cfg config) (_ *slurm, err error) {
	dir, err := os.MkdirTemp("/var/tmp", "bench-slurm-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	c := &slurm{dir: dir}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		program, awaits string
		args            []string
	}{
		{"munged", "", []string{"--foreground", "--force", "--num-threads=2", "--key-file=" + dir + "/munge.key", "--socket=" + dir + "/munge",
			"--pid-file=" + dir + "/munge.pid", "--seed-file=" + dir + "/munge.seed", "--log-file=" + dir + "/munge.log"}},
		{"slurmctld", "squeue", []string{"-D", "-f", dir + "/slurm.conf"}},
		{"slurmd", "sinfo", []string{"-D", "-N", "n1", "-f", dir + "/slurm.conf"}},
	} {
		if err := c.startDaemon(ctx, cfg, d.program, d.awaits, d.args); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writeFiles writes all files.
func (c *slurm) writeFiles() error {
	for _, sub := range []string{"control", "spool", "shared", "bin", "told"} {
		if err := os.Mkdir(filepath.Join(c.dir, sub), 0o700); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // it never fails
	control, err := freePort()
	if err != nil {
		return err
	}
	node, err := freePort()
	if err != nil {
		return err
	}
	files := map[string][]byte{"munge.key": key, "slurm.conf": fmt.Appendf(nil, slurmConf, c.dir, control, node), "calls": nil}
	for _, name := range slurmCommands {
		if path, err := exec.LookPath(name); err == nil {
			files["bin/"+name] = fmt.Appendf(nil, counting, name, c.dir, path)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o700); err != nil { //nolint:gosec // some of them are programs
			return fmt.Errorf("write file: %w", err)
		}
	}
	return nil
}

// startDaemon starts a program, and returns when it works.
func (c *slurm) startDaemon(ctx context.Context, cfg config, program, awaits string, args []string) error {
	path, err := findProgram(program)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...) //nolint:noctx // it is ended by stop, gently
	cmd.Env = c.commandEnvironment()
	p, err := startProgram(program, cmd, cfg.logs)
	if err != nil {
		return err
	}
	c.daemons = append(c.daemons, p)
	for {
		var ready bool
		switch awaits {
		case "":
			_, err := os.Stat(c.dir + "/munge")
			ready = err == nil
		case "sinfo":
			out, err := c.run(ctx, awaits, "--noheader", "--format=%T")
			ready = err == nil && strings.TrimSpace(string(out)) == "idle"
		default:
			_, err := c.run(ctx, awaits)
			ready = err == nil
		}
		if ready {
			return nil
		}
		select {
		case <-p.done:
			return p.endReason()
		default:
		}
		if err := waitFor(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w: %s", program, err, p.said)
		}
	}
}

func (c *slurm) commandEnvironment() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SLURM_TIME_FORMAT=%s", "SLURM_CONF=" + c.dir + "/slurm.conf"}
}

// run calls a command of Slurm, which is not counted.
func (c *slurm) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.commandEnvironment()
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// stop cancels all jobs, ends the daemons, and removes their files.
func (c *slurm) stop() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("jobs do not end"))
	defer cancel()
	if len(c.daemons) == 3 {
		_, _ = c.run(ctx, "scancel", "--signal=KILL", "--full", "--me")
		for ctx.Err() == nil {
			out, err := c.run(ctx, "squeue", "--noheader", "--format=%i")
			if err != nil || len(bytes.TrimSpace(out)) == 0 {
				break
			}
			_ = waitFor(ctx, 200*time.Millisecond)
		}
	}
	for i := len(c.daemons) - 1; i >= 0; i-- {
		c.daemons[i].stop()
	}
	_ = os.RemoveAll(c.dir)
}
