// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Ends are the node's ends of a stream. A nil end is unused.
type Ends struct {
	In       io.Reader
	Out, Err io.Writer
	Resize   <-chan api.TermSize
}

// Stream runs the request req in a pod. The pod's program reads frames from to, and writes frames to from. Stream returns when the session has ended.
// The exit code of a command is an exec.CodeExitError. A read of e.In may continue until e.In ends, so cancel ctx afterwards.
func Stream(ctx context.Context, to io.Writer, from io.Reader, req Request, e Ends) error {
	frames := NewFrames(to)
	if err := frames.SendJSON(FrameInput, req); err != nil {
		return err
	}
	go sendInput(ctx, frames, e)
	return receiveFrames(from, e)
}

// sendInput sends the input of the node's side. It ends with the streams of the caller.
func sendInput(ctx context.Context, frames *Frames, e Ends) {
	if e.Resize != nil {
		go func() {
			for {
				select {
				case s, ok := <-e.Resize:
					if !ok || frames.SendJSON(FrameResize, Size{Width: s.Width, Height: s.Height}) != nil {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	if e.In == nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := e.In.Read(buffer)
		if n > 0 && frames.Send(FrameInput, buffer[:n]) != nil {
			return
		}
		if err != nil {
			_ = frames.Send(FrameInputEnd, nil)
			return
		}
	}
}

// ErrNoResult means that a stream ended before the pod sent the result of its session.
var ErrNoResult = errors.New("no result")

// receiveFrames reads the frames of the job until the result.
func receiveFrames(from io.Reader, e Ends) error {
	for {
		kind, data, err := ReadFrame(from)
		if err != nil {
			return ErrNoResult
		}
		switch {
		case kind == FrameOutput && e.Out != nil:
			_, err = e.Out.Write(data)
		case kind == FrameError && e.Err != nil:
			_, err = e.Err.Write(data)
		case kind == FrameResult:
			var r Result
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
