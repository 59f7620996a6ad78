// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"context"
	"os/exec"

	"k8s.io/apimachinery/pkg/types"
)

// slurm is Slurm as pods need it: its commands, or slurmrestd in their place.
type slurm interface {
	// jobs are all of the user that Slurm still knows, also those that ended lately, or those that more says, as flags of squeue.
	jobs(ctx context.Context, more ...string) ([]queued, error)
	// submit submits a job, as the command line of sbatch says. It returns its number.
	submit(ctx context.Context, args []string) (int, error)
	// cancel ends jobs, or does with them what more says, as flags of scancel. An error may be of some of them only.
	cancel(ctx context.Context, ids []int, more ...string) error
	// cancelNamed ends the job of each pod whose number may not be known, or may be that of another job by now. Without one it succeeds.
	cancelNamed(ctx context.Context, uids []types.UID) error
	// accounted returns the states of jobs that Slurm has forgotten, as far as its accounting has them.
	accounted(ctx context.Context, jobs []queued) (map[int]string, error)
	// partition returns the nodes of a partition, and whether it is up. "" is the default one.
	partition(ctx context.Context, name string) (machines []machine, up bool, err error)
	// step is a command of srun: streams have no other way.
	step(ctx context.Context, args ...string) *exec.Cmd
	// close lets go of what is kept for the next call, which may still come.
	close()
}

var (
	_ slurm = client{}
	_ slurm = (*rest)(nil)
)

// Flags of scancel that the provider uses.
const (
	whilePending = "--state=PENDING"
	tellBatch    = "--signal=USR1"
	batchOnly    = "--batch"
)

// slurm returns the one that the configuration asks for.
func (c Config) slurm() slurm {
	commands := client{c.BinDir, c.SlurmConf, c.SSH}
	if c.REST == nil {
		return commands
	}
	return newREST(*c.REST, commands)
}
