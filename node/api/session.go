// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// sessionFunc runs one exec or attach session.
type sessionFunc func(ctx context.Context, attach AttachIO) error

// session implements remotecommand.Executor for one session. What the library
// passes along unchanged, run knows already.
type session struct {
	opts   remotecommand.Options
	run    sessionFunc
	record *streamRecord
}

func (s session) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return s.do(ctx, in, out, err, resize)
}

// do calls run with the streams that were asked for and returns what the
// client is to learn: nil, an ExitError, or any other error.
func (s session) do(ctx context.Context, in io.Reader, out, err io.WriteCloser, resize <-chan remotecommand.TerminalSize) error {
	if err := requireStreams(s.opts, in, out, err); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	sizes := make(chan TermSize, 1)
	forwarded := make(chan struct{})
	if resize == nil {
		close(sizes)
		close(forwarded)
	} else {
		go func() {
			defer close(forwarded)
			forwardResize(ctx, resize, sizes)
		}()
	}
	defer func() {
		cancel()
		<-forwarded
	}()
	ended := recoverPanic(ctx, func() error {
		return s.run(ctx, makeAttachIO(s.opts, in, out, err, sizes))
	})
	s.record.called(ctx, ended)
	if ended == nil && ctx.Err() != nil {
		ended = errCutShort
	}
	return exitError(unlessGone(ctx, ended))
}

// errCutShort is the outcome of a session whose provider returned nil after its
// context had ended: nobody knows whether the command has done its work, and a
// client that is still there when the server stops must not be told so.
var errCutShort = errors.New("the node ended the session")

// unlessGone keeps an error from the library when the client has left: nobody
// would read it, and the library would log every such end as an error. A
// client that is still there gets it, because no error means success.
func unlessGone(ctx context.Context, err error) error {
	if err == nil || !clientLeft(ctx) {
		return err
	}
	log.G(ctx).WithError(err).Debug("session ended because the client left")
	return nil
}

// exitError takes the exit error out of its wrapping, because the library recognises
// only one that is not wrapped. Exit code 0 is no error.
func exitError(err error) error {
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || !exit.Exited() {
		return err
	}
	if exit.ExitStatus() == 0 {
		return nil
	}
	return exit
}
