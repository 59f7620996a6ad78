// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"io"
	"time"
)

// TimestampedLog is an optional ability of the stream that a
// ContainerLogsHandlerFunc returns. It says: this is every line of the log,
// oldest first, each with an RFC 3339 timestamp (nanoseconds are fine) and a
// blank at its head. The server then applies Tail, SinceSeconds, SinceTime, Timestamps and
// LimitBytes, and the provider looks at Previous and Follow only.
//
// With Follow and Tail together the function is called a second time, without
// Follow, to learn where the old lines end.
//
// A line without a timestamp is passed on as it is.
type TimestampedLog interface {
	io.ReadCloser
	// TimestampedLog does nothing; to have it is the statement.
	TimestampedLog()
}

// openFiltered opens a log and makes it what opts asks for.
func openFiltered(open func(ContainerLogOpts) (io.ReadCloser, error), opts ContainerLogOpts, now time.Time) (io.ReadCloser, error) {
	stream, err := open(opts)
	if err != nil {
		return nil, err
	}
	var body io.Reader = stream
	if _, ok := stream.(TimestampedLog); ok {
		body, err = filterTimestamped(open, stream, opts, now)
		if err != nil {
			return nil, errors.Join(err, stream.Close())
		}
	} else if opts.Tail > 0 && !opts.Follow {
		body = &tailReader{source: stream, lines: opts.Tail}
	}
	if opts.LimitBytes > 0 {
		body = io.LimitReader(body, int64(opts.LimitBytes))
	}
	return readCloser{body, stream}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// filterTimestamped applies everything but the limit.
func filterTimestamped(open func(ContainerLogOpts) (io.ReadCloser, error), stream io.Reader, opts ContainerLogOpts, now time.Time) (io.Reader, error) {
	filter := func(r io.Reader) *stampedReader { return newStampedReader(r, opts.since(now), opts.Timestamps) }
	if opts.Tail == 0 {
		return filter(stream), nil
	}
	if !opts.Follow {
		return &tailReader{source: filter(stream), lines: opts.Tail}, nil
	}

	// A stream that follows does not say where its old lines end, so they
	// are counted in a second one that ends there.
	opts.Follow = false
	backlog, err := open(opts)
	if err != nil {
		return nil, err
	}
	defer backlog.Close()
	old := filter(backlog)
	tail := &tailReader{source: old, lines: opts.Tail}
	begin, err := tail.wholeLines()
	if err != nil {
		return nil, err
	}
	fresh := filter(stream)
	fresh.skip = old.whole
	return io.MultiReader(begin, fresh), nil
}
