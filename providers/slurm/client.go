// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// client calls the commands of Slurm. No command gets a text that a user chose, except flags that the
// configuration allows (flags.go).
type client struct {
	binDir, conf string
	ssh          *SSH // nil: this machine has the commands
}

// commandTimeout bounds one command.
const commandTimeout = 30 * time.Second

// refusedError is a refusal with Slurm's message.
type refusedError struct{ command, said string }

func (e *refusedError) Error() string { return e.command + ": " + e.said }

// environment returns the environment of commands. On another machine, the commands get nothing from the environment of this process,
// because command lines are visible.
func (c client) environment() []string {
	env := []string{"LC_ALL=C", "SLURM_TIME_FORMAT=%s"}
	if c.conf != "" {
		env = append(env, "SLURM_CONF="+c.conf)
	}
	if c.ssh != nil {
		return env
	}
	env = append(env, "PATH="+os.Getenv("PATH"))
	for _, name := range []string{"HOME", "USER", "LOGNAME", "SLURM_CONF", "SLURM_JWT"} {
		if v, ok := os.LookupEnv(name); ok && !(name == "SLURM_CONF" && c.conf != "") {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (c client) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := name
	if c.binDir != "" {
		path = filepath.Join(c.binDir, name)
	}
	env := c.environment()
	if c.ssh != nil {
		path, args, env = "ssh", c.ssh.arguments(env, path, args...), c.ssh.environment()
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = env, "/"
	dieTogether(cmd, syscall.SIGKILL)
	cmd.WaitDelay = time.Second
	return cmd
}

// step returns a command of srun. Its cancellation sends SIGTERM, because a killed srun does not end its step.
func (c client) step(ctx context.Context, args ...string) *exec.Cmd {
	cmd := c.command(ctx, "srun", args...)
	dieTogether(cmd, syscall.SIGTERM)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// close does nothing: each command is a process.
func (client) close() {}

// run returns the output of a command.
func (c client) run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var out, said bytes.Buffer
	cmd := c.command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s does not answer: %w", name, ctx.Err())
	case errors.As(err, &exited):
		text := strings.Join(strings.Fields(strings.ReplaceAll(said.String(), name+": error: ", "")), " ")
		if text == "" {
			text = err.Error()
		}
		if c.ssh != nil && exited.ExitCode() == sshFailed {
			return "", fmt.Errorf("%s: ssh %s: %s", name, c.ssh.Host, text[max(0, len(text)-maxSaid):]) // the reason is at the end
		}
		return "", &refusedError{name, text}
	}
	return "", fmt.Errorf("%s: %w", name, err)
}

// maxSaid bounds the text of ssh in an error.
const maxSaid = 400

// refusals are parts of messages of Slurm, or of sbatch itself, that prove that there is no job. Other messages prove nothing.
var refusals = []string{
	"Invalid", "invalid", "unrecognized option", "not permitted", "Job violates", "Permission denied",
	"Requested node configuration is not available", "Requested partition configuration not available", "Requested time limit",
	"Failure during parsing", "Node count specification", "Memory specification", "Required partition not available",
}

// unclear reports whether a job may have been submitted although sbatch failed.
func unclear(err error) bool {
	if errdefs.IsInvalidInput(err) {
		return false
	}
	var refused *refusedError
	if !errors.As(err, &refused) {
		return true
	}
	said := refused.said
	if i := strings.LastIndex(said, submissionFailed); i >= 0 {
		said = said[i+len(submissionFailed):]
	}
	for _, text := range refusals {
		if strings.Contains(said, text) {
			return false
		}
	}
	return true
}

// submissionFailed precedes the reason in the output of sbatch.
const submissionFailed = "Batch job submission failed: "

// queued is a job in the output of squeue.
type queued struct {
	ID         int
	State      string
	Reason     string
	Name, Host string
	Submitted  time.Time
	Started    time.Time
	Comment    string
}

// queueFormat names the fields of queued. The comment is the last one, because it may contain anything.
const queueFormat = "%i|%T|%r|%j|%B|%V|%S|%k"

// jobs returns all jobs of this user that Slurm still knows, including recently ended jobs and jobs in
// partitions that are hidden from the user.
func (c client) jobs(ctx context.Context, more ...string) ([]queued, error) {
	out, err := c.run(ctx, "squeue", append([]string{"--noheader", "--me", "--all", "--states=all", "--format=" + queueFormat}, more...)...)
	if err != nil {
		return nil, err
	}
	var all []queued
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 8)
		if len(f) < 8 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		if err != nil {
			continue // a task of an array does not belong to this provider
		}
		all = append(all, queued{ID: id, State: f[1], Reason: f[2], Name: f[3], Host: f[4], Submitted: seconds(f[5]), Started: seconds(f[6]), Comment: f[7]})
	}
	return all, nil
}

// seconds returns the time of a number of seconds in digits, or the zero time for any other text.
func seconds(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	return moment(n)
}

func moment(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// submit returns the number of the new job.
func (c client) submit(ctx context.Context, args []string) (int, error) {
	out, err := c.run(ctx, "sbatch", args...)
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(strings.TrimSpace(out), ";") // a federation adds the cluster
	id, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("sbatch: %q is no number of a job", out)
	}
	return id, nil
}

// maxJobs is the maximum number of jobs in one command.
const maxJobs = 500

// cancel cancels jobs, or acts on them by the flags in more. An error may be about some of them only.
func (c client) cancel(ctx context.Context, ids []int, more ...string) error {
	var all []error
	for some := range slices.Chunk(ids, maxJobs) {
		args := slices.Clone(more)
		for _, id := range some {
			args = append(args, strconv.Itoa(id))
		}
		_, err := c.run(ctx, "scancel", args...)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// cancelNamed cancels the job of each pod with an unknown or outdated job number. It succeeds if there is no
// such job.
func (c client) cancelNamed(ctx context.Context, uids []types.UID) error {
	var all []error
	for _, uid := range uids {
		_, err := c.run(ctx, "scancel", "--me", "--name="+jobName(uid))
		all = append(all, err)
	}
	return errors.Join(all...)
}

// accounted requests the states of jobs from the accounting. Without an accounting, the result is empty. A number in the accounting
// may belong to an older job, because Slurm may restart its numbers.
func (c client) accounted(ctx context.Context, jobs []queued) (map[int]string, error) {
	known := map[int]string{}
	for some := range slices.Chunk(jobs, maxJobs) {
		var list []string
		for _, q := range some {
			list = append(list, strconv.Itoa(q.ID))
		}
		out, err := c.run(ctx, "sacct", "--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State,Submit,JobName", "--jobs="+strings.Join(list, ","))
		if err != nil && !unaccounted(err) {
			return known, err
		}
		for line := range strings.Lines(out) {
			f := strings.SplitN(strings.TrimSuffix(line, "\n"), "|", 4)
			if len(f) < 4 {
				continue
			}
			state, _, _ := strings.Cut(f[1], " ") // CANCELLED by 1000
			for _, q := range some {
				if f[0] == strconv.Itoa(q.ID) && f[3] == q.Name && near(seconds(f[2]), q.Submitted) {
					known[q.ID] = state
				}
			}
		}
	}
	return known, nil
}

// near reports whether two times from different clocks may belong to one submission. An unknown time is near any time.
func near(a, b time.Time) bool {
	return a.IsZero() || b.IsZero() || a.Sub(b).Abs() < 10*time.Minute
}

// unaccounted reports whether an error of sacct means that there is no accounting, or no sacct.
func unaccounted(err error) bool {
	var refused *refusedError
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) ||
		errors.As(err, &refused) && (strings.Contains(refused.said, "accounting storage is disabled") || strings.Contains(refused.said, "not found") || strings.Contains(refused.said, "No such file"))
}

// machine is a node of a partition.
type machine struct {
	name     string
	cpus     int64
	megabyte int64
	gpus     int64
	usable   bool
}

// partition returns the nodes of a partition, and whether it is up. "" is the default partition.
func (c client) partition(ctx context.Context, name string) (machines []machine, up bool, err error) {
	args := []string{"--noheader", "--Node", "--exact", "--format=%N|%c|%m|%T|%a|%P|%G"}
	if name != "" {
		args = append(args, "--partition="+name)
	}
	out, err := c.run(ctx, "sinfo", args...)
	if err != nil {
		return nil, false, err
	}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 7)
		if len(f) < 7 || name == "" && !strings.HasSuffix(f[5], "*") {
			continue
		}
		cpus, _ := strconv.ParseInt(f[1], 10, 64)
		memory, _ := strconv.ParseInt(strings.TrimSuffix(f[2], "+"), 10, 64)
		up = up || f[4] == "up"
		machines = append(machines, machine{name: f[0], cpus: cpus, megabyte: memory, gpus: gpusOf(f[6]), usable: usable(f[3])})
	}
	if len(machines) == 0 {
		return nil, false, &refusedError{"sinfo", fmt.Sprintf("partition %q has no nodes, or is not there", name)}
	}
	return machines, up, nil
}

// usable reports whether a node in that state runs jobs, now or later.
func usable(state string) bool {
	if strings.ContainsAny(state, "*") { // the node does not respond
		return false
	}
	for _, bad := range []string{"down", "drain", "fail", "inval", "unk", "maint"} {
		if strings.HasPrefix(state, bad) {
			return false
		}
	}
	return true
}

// gpusOf counts the GPUs in a list such as gpu:a100:4(S:0-1),shard:8.
func gpusOf(gres string) (n int64) {
	for item := range strings.SplitSeq(gres, ",") {
		item, _, _ = strings.Cut(item, "(")
		parts := strings.Split(item, ":")
		if parts[0] != "gpu" {
			continue
		}
		count, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
		if err != nil {
			count = 1
		}
		n += count
	}
	return n
}
