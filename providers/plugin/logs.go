// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
)

func callerOf(ctx context.Context) *rpc.Caller {
	who, ok := api.CallerFrom(ctx)
	if !ok {
		return nil
	}
	return &rpc.Caller{Name: who.Name, Groups: who.Groups}
}

// GetContainerLogs opens a log through the plugin.
func (p *plugin) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	if err := p.requireAbility(rpc.Ability_ABILITY_LOGS, "logs"); err != nil {
		return nil, err
	}
	s, err := p.connectedSession()
	if err != nil {
		return nil, err
	}
	request := &rpc.LogsRequest{
		Namespace: namespace, Pod: podName, Container: containerName, Tail: int64(opts.Tail), LimitBytes: int64(opts.LimitBytes),
		Timestamps: opts.Timestamps, Follow: opts.Follow, Previous: opts.Previous, SinceSeconds: int64(opts.SinceSeconds), Caller: callerOf(ctx),
	}
	if !opts.SinceTime.IsZero() {
		request.SinceTime = opts.SinceTime.Format(time.RFC3339Nano)
	}
	ctx, cancel := s.boundContext(ctx)
	l := &logReader{p: p, s: s, ctx: ctx, cancel: cancel}
	l.stream, err = s.GetContainerLogs(ctx, request)
	if err == nil {
		err = l.next() // the first message or error shows whether the log could be opened
	} else {
		err = l.endLog(err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		cancel()
		return nil, err
	}
	return l, nil
}

// logReader reads a log from the plugin. A broken stream is an error, not the end of the log.
type logReader struct {
	p      *plugin
	s      *session
	ctx    context.Context //nolint:containedctx // the life of the stream
	cancel context.CancelFunc
	stream rpc.Provider_GetContainerLogsClient
	rest   []byte
	ended  error
}

func (l *logReader) next() error {
	chunk, err := l.stream.Recv()
	if err != nil {
		return l.endLog(err)
	}
	l.rest = chunk.GetData()
	return nil
}

func (l *logReader) endLog(err error) error {
	l.ended = err
	if !errors.Is(err, io.EOF) {
		_, l.ended = l.p.decodeError(l.ctx, l.s, err, trailerOf(l.stream))
	}
	return l.ended
}

// Read returns the next part of the log.
func (l *logReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.ended != nil {
			return 0, l.ended
		}
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close ends the stream.
func (l *logReader) Close() error {
	l.cancel()
	return nil
}
