// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

// Exec implements service.Executor, through a step of the job.
func (d *driver) Exec(ctx context.Context, in service.Target[*instance], command []string, attach api.AttachIO) error {
	if attach.TTY() {
		return errdefs.InvalidInput("a command in a job has no terminal: leave -t away")
	}
	return d.stream(ctx, in.Instance, podjob.Request{
		Op: podjob.OpExec, Container: in.Container, Command: command, TTY: attach.TTY(),
		Stdin: attach.Stdin() != nil, Stdout: attach.Stdout() != nil, Stderr: attach.Stderr() != nil,
	}, ends{attach.Stdin(), attach.Stdout(), attach.Stderr(), attach.Resize()})
}

// ends are what a stream connects with; nil for none.
type ends struct {
	in       io.Reader
	out, err io.Writer
	resize   <-chan api.TermSize
}

// stream does what req says. The command line of the step has a path and a number: the request goes through its input.
func (d *driver) stream(ctx context.Context, i *instance, req podjob.Request, e ends) error {
	if i.said == nil || i.said.Ended {
		return errdefs.InvalidInput("its job does not run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := d.slurm.step(ctx, "--jobid="+strconv.Itoa(i.job.ID), "--overlap", "--ntasks=1", "--nodes=1", "--mem=0", "--quiet", "--chdir=/",
		d.place.program, enter.Marker, enter.ModeStream, i.said.Socket)
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
	frames := podjob.NewFrames(in)
	err = frames.SendJSON(podjob.FrameInput, req)
	if err == nil {
		go send(ctx, frames, e)
		err = receive(out, e)
	}
	cancel()
	_ = cmd.Wait() // its end says nothing that the result did not
	if errors.Is(err, errNoResult) {
		return fmt.Errorf("the step of job %d ended early: %.400s", i.job.ID, bytes.TrimSpace(complaint.Bytes()))
	}
	return err
}

// send sends what comes from this side. A read of somebody else's stream ends with that.
func send(ctx context.Context, frames *podjob.Frames, e ends) {
	if e.resize != nil {
		go func() {
			for {
				select {
				case s, ok := <-e.resize:
					if !ok || frames.SendJSON(podjob.FrameResize, podjob.Size{Width: s.Width, Height: s.Height}) != nil {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	if e.in == nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := e.in.Read(buffer)
		if n > 0 && frames.Send(podjob.FrameInput, buffer[:n]) != nil {
			return
		}
		if err != nil {
			_ = frames.Send(podjob.FrameInputEnd, nil)
			return
		}
	}
}

var errNoResult = errors.New("no result")

// receive takes in what the job sends, until the result.
func receive(from io.Reader, e ends) error {
	for {
		kind, data, err := podjob.ReadFrame(from)
		if err != nil {
			return errNoResult
		}
		switch {
		case kind == podjob.FrameOutput && e.out != nil:
			_, err = e.out.Write(data)
		case kind == podjob.FrameError && e.err != nil:
			_, err = e.err.Write(data)
		case kind == podjob.FrameResult:
			var r podjob.Result
			if err := json.Unmarshal(data, &r); err != nil {
				return err
			}
			switch {
			case r.Exit != 0:
				return utilexec.CodeExitError{Err: errors.New(r.Error), Code: r.Exit}
			case r.Error != "":
				return errors.New(r.Error)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}
