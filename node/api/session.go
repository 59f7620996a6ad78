// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"io"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// sessionFunc runs one exec or attach session.
type sessionFunc func(ctx context.Context, attach AttachIO) error

// session implements remotecommand.Executor for one session. run is bound to the values that the library would only pass through.
type session struct {
	opts   remotecommand.Options
	run    sessionFunc
	record *streamRecord
}

func (s session) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out, err io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return s.do(ctx, in, out, err, resize)
}

// do calls run with the requested streams and returns the outcome for the client: nil, an ExitError, or any
// other error.
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
	return told(ctx, ended)
}
