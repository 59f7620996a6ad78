// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"errors"
	"io"
	"time"
	"unsafe"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Line is a line of a log. Text ends with a newline, except in an unfinished last line. It must not be changed.
type Line struct {
	At   time.Time
	Text []byte
}

// Source returns the lines of one run of a container, oldest first.
type Source interface {
	// Next returns the next lines. Without new lines it waits until there are some, ctx ends or the log ends;
	// with wait false it does not wait. io.EOF is the end of the log, or with wait false the end of the present
	// lines.
	Next(ctx context.Context, wait bool) ([]Line, error)
}

// maxTail is the maximum number of bytes that are kept for a tail.
const maxTail = 16 << 20

// overhead is the memory of a line besides its text.
const overhead = int(unsafe.Sizeof(Line{}))

// stamp is a kubelet's form of the time of a line. It has all nine digits, so that lines can be sorted by it.
const stamp = "2006-01-02T15:04:05.000000000Z07:00"

// NewReader returns the lines of source that opts select, except for Previous, which is another source. A tail
// gives at most the newest 16 MiB. Only Read reads the source; ctx and Close end a waiting Read. If source is an
// io.Closer, Close closes it. SinceSeconds count from now.
func NewReader(ctx context.Context, source Source, opts api.ContainerLogOpts, now time.Time) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{ctx: ctx, cancel: cancel, source: source, opts: opts, since: opts.SinceTime, limit: -1}
	if opts.SinceSeconds > 0 {
		r.since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	if opts.LimitBytes > 0 {
		r.limit = opts.LimitBytes
	}
	return r
}

type reader struct {
	ctx    context.Context // Read has no context parameter
	cancel context.CancelFunc
	source Source
	opts   api.ContainerLogOpts
	since  time.Time

	tailed bool
	limit  int // bytes left; below 0 for no limit
	lines  []Line
	rest   []byte // the beginning of the current line
}

// Read returns the present lines, or waits for lines if the options say so.
func (r *reader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.limit == 0 {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
		line := r.lines[0]
		r.lines = r.lines[1:]
		r.rest = line.Text
		if r.opts.Timestamps {
			stamped := append(line.At.UTC().AppendFormat(nil, stamp), ' ')
			r.rest = append(stamped, line.Text...)
		}
		if r.limit > 0 {
			r.rest = r.rest[:min(len(r.rest), r.limit)]
			r.limit -= len(r.rest)
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill gets the next line.
func (r *reader) fill() error {
	if r.opts.Tail > 0 && !r.tailed {
		if err := r.tail(); err != nil {
			return err
		}
		r.tailed = true
	}
	for len(r.lines) == 0 {
		if r.tailed && !r.opts.Follow {
			return io.EOF // newer lines are not part of the requested tail
		}
		lines, err := r.next(r.opts.Follow)
		if err != nil {
			return err
		}
		r.lines = lines
	}
	return nil
}

// tail reads all present lines, and keeps the last of them.
func (r *reader) tail() error {
	kept := 0
	for {
		lines, err := r.next(false)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		for _, l := range lines {
			kept += len(l.Text) + overhead
		}
		r.lines = append(r.lines, lines...)
		drop := 0
		for ; len(r.lines)-drop > r.opts.Tail || kept > maxTail && len(r.lines)-drop > 1; drop++ {
			kept -= len(r.lines[drop].Text) + overhead
		}
		clear(r.lines[:drop]) // lets go of their texts
		r.lines = r.lines[drop:]
	}
}

// next returns the next lines that are new enough. The list may be empty.
func (r *reader) next(wait bool) ([]Line, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	lines, err := r.source.Next(r.ctx, wait)
	if err != nil {
		return nil, err
	}
	if r.since.IsZero() {
		return lines, nil
	}
	var young []Line
	for _, l := range lines {
		if !l.At.Before(r.since) {
			young = append(young, l)
		}
	}
	return young, nil
}

// Close ends the reader, and a waiting Read.
func (r *reader) Close() error {
	r.cancel()
	if c, ok := r.source.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
