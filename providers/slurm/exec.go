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

	corev1 "k8s.io/api/core/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/job"
)

// RunInContainer runs a command in a container, through a step of its job.
func (p *provider) RunInContainer(ctx context.Context, namespace, name, container string, cmd []string, attach api.AttachIO) error {
	if attach.TTY() {
		return errdefs.InvalidInputf("pod %s/%s: a command in a job has no terminal: leave -t away", namespace, name)
	}
	return p.stream(ctx, namespace, name, job.Request{
		Op: job.OpExec, Container: container, Command: cmd, TTY: attach.TTY(),
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
func (p *provider) stream(ctx context.Context, namespace, name string, req job.Request, e ends) error {
	p.mu.Lock()
	t := p.find(namespace, name)
	var said *job.Status
	var pod *corev1.Pod
	var number int
	if t != nil {
		said, pod, number = t.said, t.pod, t.job.ID
	}
	p.mu.Unlock()
	switch {
	case t == nil:
		return notFound(namespace, name)
	case req.Container != "" && !hasContainer(pod, req.Container):
		return errdefs.NotFoundf("container %q is not one of pod %s/%s", req.Container, namespace, name)
	case said == nil || said.Ended:
		return errdefs.InvalidInputf("pod %s/%s: its job does not run", namespace, name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := p.slurm.step(ctx, "--jobid="+strconv.Itoa(number), "--overlap", "--ntasks=1", "--nodes=1", "--mem=0", "--quiet", "--chdir=/",
		p.place.program, enter.Marker, enter.ModeStream, said.Socket)
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
	frames := job.NewFrames(in)
	err = frames.SendJSON(job.FrameInput, req)
	if err == nil {
		go send(ctx, frames, e)
		err = receive(out, e)
	}
	cancel()
	_ = cmd.Wait() // its end says nothing that the result did not
	if errors.Is(err, errNoResult) {
		return fmt.Errorf("pod %s/%s: the step of job %d ended early: %.400s", namespace, name, number, bytes.TrimSpace(complaint.Bytes()))
	}
	return err
}

// send sends what comes from this side. A read of somebody else's stream ends with that.
func send(ctx context.Context, frames *job.Frames, e ends) {
	if e.resize != nil {
		go func() {
			for {
				select {
				case s, ok := <-e.resize:
					if !ok || frames.SendJSON(job.FrameResize, job.Size{Width: s.Width, Height: s.Height}) != nil {
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
		if n > 0 && frames.Send(job.FrameInput, buffer[:n]) != nil {
			return
		}
		if err != nil {
			_ = frames.Send(job.FrameInputEnd, nil)
			return
		}
	}
}

var errNoResult = errors.New("no result")

// receive takes in what the job sends, until the result.
func receive(from io.Reader, e ends) error {
	for {
		kind, data, err := job.ReadFrame(from)
		if err != nil {
			return errNoResult
		}
		switch {
		case kind == job.FrameOutput && e.out != nil:
			_, err = e.out.Write(data)
		case kind == job.FrameError && e.err != nil:
			_, err = e.err.Write(data)
		case kind == job.FrameResult:
			var r job.Result
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
