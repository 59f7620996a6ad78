// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"os/exec"

	"k8s.io/apimachinery/pkg/types"
)

// slurm is the interface of Slurm for pods: its commands, or slurmrestd in their place.
type slurm interface {
	// jobs returns all jobs of the user that Slurm still knows, including recently ended jobs, or the jobs that
	// the squeue flags in more select.
	jobs(ctx context.Context, more ...string) ([]queued, error)
	// submit submits a job with the command line of sbatch, and returns its number.
	submit(ctx context.Context, args []string) (int, error)
	// cancel cancels jobs, or acts on them by the scancel flags in more. An error may be about some of them
	// only.
	cancel(ctx context.Context, ids []int, more ...string) error
	// cancelNamed cancels the job of each pod with an unknown or outdated job number. It succeeds if there is no
	// such job.
	cancelNamed(ctx context.Context, uids []types.UID) error
	// accounted returns the states of jobs that Slurm has forgotten, from its accounting.
	accounted(ctx context.Context, jobs []queued) (map[int]string, error)
	// partition returns the nodes of a partition, and whether it is up. "" is the default partition.
	partition(ctx context.Context, name string) (machines []machine, up bool, err error)
	// step returns a command of srun, which is the only way for streams.
	step(ctx context.Context, args ...string) *exec.Cmd
	// close releases resources that are kept for the next call. A call may still follow.
	close()
}

var (
	_ slurm = client{}
	_ slurm = (*rest)(nil)
)

// Flags of scancel.
const (
	whilePending = "--state=PENDING"
	tellBatch    = "--signal=USR1"
	batchOnly    = "--batch"
)

// slurm returns the configured access to Slurm.
func (c Config) slurm() slurm {
	commands := client{c.BinDir, c.SlurmConf, c.SSH}
	if c.REST == nil {
		return commands
	}
	return newREST(*c.REST, commands)
}
