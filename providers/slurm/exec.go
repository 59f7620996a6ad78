// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// streamIn runs a request in a step of a job. The command line of the step has only a path and a number; the request goes through the
// input of the step. program is the path of the program of jobs.
func streamIn(ctx context.Context, s slurm, program string, i *instance, req podjob.Request, e podjob.Ends) error {
	if i.said == nil || i.said.Ended {
		return errdefs.InvalidInput("its job does not run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := s.step(ctx, "--jobid="+strconv.Itoa(i.job.ID), "--overlap", "--ntasks=1", "--nodes=1", "--mem=0", "--quiet", "--chdir=/",
		program, enter.Marker, enter.ModeStream, i.said.Socket)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("srun: %w", err)
	}
	err = podjob.Stream(ctx, in, out, req, e)
	cancel()
	_ = cmd.Wait() // the result has the exit code already
	if errors.Is(err, podjob.ErrNoResult) {
		return fmt.Errorf("the step of job %d ended early: %.400s", i.job.ID, bytes.TrimSpace(complaint.Bytes()))
	}
	return err
}
