// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Reread is the log of a service without a stream: it reads the newest lines repeatedly.
type Reread struct {
	// Read returns the newest lines of the log, from since or earlier; zero means the whole log. ended is the
	// result of Ended: while it is false, Read may leave out an incomplete last line.
	Read func(ctx context.Context, since time.Time, ended bool) ([]Line, error)
	// Ended reports whether the log has stopped growing. It is called before each Read, so the last Read has all
	// lines.
	Ended func() bool
	// Every is the time between two reads while the log is followed.
	Every time.Duration
}

// Open reads the log once, so that a refusal is an error instead of an empty log. It returns the lines that opts
// select; see NewReader. A followed log ends at an error of the kind not-found, and continues after an error
// with a time for the next try.
func (r Reread) Open(ctx context.Context, opts api.ContainerLogOpts, now time.Time) (io.ReadCloser, error) {
	since := opts.SinceTime
	if opts.SinceSeconds > 0 {
		since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	s := &rereading{Reread: r}
	var err error
	if s.first, err = s.read(ctx, since); err != nil {
		return nil, err
	}
	return NewReader(ctx, s, opts, now), nil
}

// rereading is the Source that a Reread uses.
type rereading struct {
	Reread
	first []Line // the lines read by Open
	last  time.Time
	same  int // number of returned lines with the timestamp last
	over  bool
}

// Next implements Source.
func (s *rereading) Next(ctx context.Context, wait bool) ([]Line, error) {
	if lines := s.first; len(lines) > 0 {
		s.first = nil
		return lines, nil
	}
	timer := time.NewTimer(s.Every)
	defer timer.Stop()
	for wait && !s.over {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
		lines, err := s.read(ctx, s.last)
		after, later := errdefs.RetryAfterOf(err)
		switch {
		case errdefs.IsNotFound(err):
			return nil, io.EOF
		case err != nil && !later:
			return nil, err
		case len(lines) > 0:
			return lines, nil
		}
		timer.Reset(max(s.Every, after))
	}
	return nil, io.EOF
}

// read reads the log and returns the new lines. It skips lines with the time of the last line that were already returned.
func (s *rereading) read(ctx context.Context, since time.Time) (fresh []Line, err error) {
	ended := s.Ended()
	all, err := s.Read(ctx, since, ended)
	if err != nil {
		return nil, err
	}
	s.over = ended
	same := 0
	for _, l := range all {
		switch {
		case l.At.Before(s.last):
			continue
		case l.At.Equal(s.last):
			if same++; same <= s.same {
				continue
			}
			s.same++
		default:
			s.last, s.same, same = l.At, 1, 1
		}
		fresh = append(fresh, l)
	}
	return fresh, nil
}

// Stamped returns the lines of a text in which each line begins with a time. A line without a time gets the time of the previous line.
func Stamped(text string) (lines []Line) {
	var at time.Time
	for line := range strings.Lines(text) {
		first, rest, found := strings.Cut(line, " ")
		if t, err := time.Parse(time.RFC3339Nano, first); found && err == nil {
			at, line = t, rest
		}
		lines = append(lines, Line{At: at, Text: []byte(line)})
	}
	return lines
}
