// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

const (
	// mostLines is how many lines ECI gives at once: the newest ones. It gives no more than 1 MiB, too.
	mostLines = 2000
	// logEvery is how often a log that is followed is asked for: with 500 requests a minute for an account, and twice that
	// would be one follower in four.
	logEvery = 2 * time.Second
)

// Logs implements service.LogReader: the newest lines of the log, and with Follow those that come.
func (d *driver) Logs(ctx context.Context, of service.Target[instance], opts api.ContainerLogOpts) (io.ReadCloser, error) {
	now := d.client.now()
	source := &logSource{
		d: d, pod: of.Pod, run: of.State.RestartCount,
		ask: logRequest{ContainerGroupID: of.Instance.status.ContainerGroupID, ContainerName: of.Container, Tail: mostLines, Timestamps: true, LastTime: opts.Previous},
	}
	if opts.Tail > 0 {
		source.ask.Tail = min(int64(opts.Tail), mostLines)
	}
	since := opts.SinceTime
	if opts.SinceSeconds > 0 {
		since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	source.since(since)
	first, err := source.fetch(ctx) // so that a refusal is an error, and no empty log
	if err != nil {
		return nil, err
	}
	source.first = first
	return logs.NewReader(ctx, source, opts, now), nil
}

// logSource is the log of a container.
type logSource struct {
	d     *driver
	pod   *corev1.Pod
	run   int32 // how many runs came before
	ask   logRequest
	first []logs.Line // what came with the first answer; nil afterwards
	begun bool

	last time.Time // of the last line that was given
	same int       // how many lines of that time were given
	over bool      // the run has ended, and all of it was read
}

// since lets ECI leave out what is older than a time.
func (s *logSource) since(t time.Time) {
	if !t.IsZero() {
		s.ask.StartTime = t.UTC().Truncate(time.Second).Format(time.RFC3339)
	}
}

// Next implements logs.Source.
func (s *logSource) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	if !s.begun {
		s.begun = true
		if first := s.take(s.first); len(first) > 0 {
			s.first = nil
			return first, nil
		}
	}
	if !wait {
		return nil, io.EOF
	}
	s.ask.Tail = mostLines
	for !s.over {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(logEvery):
		}
		ended := s.ended() // before the question, so that its answer has the last line
		s.since(s.last)
		all, err := s.fetch(ctx)
		if errdefs.IsNotFound(err) {
			break
		}
		if _, later := errdefs.RetryAfterOf(err); err != nil && !later {
			return nil, err
		}
		s.over = ended && err == nil
		if lines := s.take(all); len(lines) > 0 {
			return lines, nil
		}
	}
	return nil, io.EOF
}

// ended reports whether the run that is read is over, as far as lists tell.
func (s *logSource) ended() bool {
	pod, _, ok := s.d.kit.Cache().Get(s.pod.UID)
	if !ok || s.ask.LastTime {
		return true
	}
	c := service.StateOf(pod, s.ask.ContainerName)
	return c == nil || c.RestartCount != s.run || c.State.Terminated != nil
}

// fetch asks for the lines.
func (s *logSource) fetch(ctx context.Context) ([]logs.Line, error) {
	var answer logAnswer
	if err := s.d.client.call(ctx, "DescribeContainerLog", s.ask, &answer); err != nil {
		return nil, err
	}
	return parseLog(answer.Content), nil
}

// take returns the lines that were not given before.
func (s *logSource) take(all []logs.Line) (fresh []logs.Line) {
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
	return fresh
}

// parseLog splits a log into lines, which begin with their times. A line without one has that of the line before.
func parseLog(content string) (lines []logs.Line) {
	var at time.Time
	for line := range strings.Lines(content) {
		stamp, text, found := strings.Cut(line, " ")
		if t, err := time.Parse(time.RFC3339Nano, stamp); found && err == nil {
			at, line = t, text
		}
		lines = append(lines, logs.Line{At: at, Text: []byte(line)})
	}
	return lines
}
