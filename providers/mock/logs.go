// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// logLimit is how many lines of a log are kept; older ones are gone, as after
// rotation.
const logLimit = 10_000

// GetContainerLogs returns the log of a container: a line when it started, one for
// each second that it ran, and one when it ended. All options are honoured.
func (p *provider) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	now := time.Now()
	p.mu.Lock()
	s, _, err := p.container(namespace, podName, containerName, now)
	if err != nil {
		p.mu.Unlock()
		return nil, err
	}
	m, uid := s.life.at(now), s.pod.UID
	p.mu.Unlock()

	name := fmt.Sprintf("pod %s/%s container %s", namespace, podName, containerName)
	if opts.Previous {
		if m.last == nil && m.stage != restarting {
			return nil, errdefs.InvalidInputf("%s has no previous run", name)
		}
		if m.last != nil {
			m = *m.last
		}
		opts.Follow = false
	}
	if m.started.IsZero() {
		return nil, errdefs.InvalidInputf("%s is waiting to start: ContainerCreating", name)
	}
	l := &logReader{name: name, moment: m, timestamps: opts.Timestamps, now: now, limit: -1}
	if opts.LimitBytes > 0 {
		l.limit = opts.LimitBytes
	}
	l.line = l.first(opts, now)
	if opts.Follow {
		l.ctx, l.cancel = context.WithCancel(ctx)
		l.look = func(now time.Time) (moment, bool) { return p.look(namespace, podName, uid, now) }
	}
	return l, nil
}

// look returns what a pod looks like, and false when it is gone.
func (p *provider) look(namespace, name string, uid types.UID, now time.Time) (moment, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.find(namespace, name, now)
	if s == nil || s.pod.UID != uid {
		return moment{}, false
	}
	return s.life.at(now), true
}

// logReader writes the lines of one run of a container as they are read. Line 0
// says that it started, line n that it ran for n seconds.
type logReader struct {
	name       string
	timestamps bool
	moment     moment
	now        time.Time
	line       int
	limit      int // bytes left; below 0 for no limit
	rest       []byte

	// Set only to follow: Read then waits for lines, until ctx ends.
	ctx    context.Context
	cancel context.CancelFunc
	look   func(now time.Time) (moment, bool)
}

// lines is how many lines there are.
func (l *logReader) lines() int {
	if end, over := l.end(); over {
		return int(end.Sub(l.moment.started)/time.Second) + 2
	}
	return max(0, int(l.now.Sub(l.moment.started)/time.Second)+1)
}

// end is when the run ended, if it did.
func (l *logReader) end() (time.Time, bool) {
	return l.moment.finished, l.moment.stage == exited || l.moment.stage == restarting
}

// at is when line n was written, and what it says.
func (l *logReader) at(n int) (time.Time, string) {
	if end, over := l.end(); over && n == l.lines()-1 {
		return end, fmt.Sprintf("%s ended with exit code %d", l.name, l.moment.exitCode)
	}
	when := l.moment.started.Add(time.Duration(n) * time.Second)
	if n == 0 {
		return when, l.name + " started"
	}
	return when, fmt.Sprintf("%s has been running for %d s", l.name, n)
}

// first is the first line that opts ask for.
func (l *logReader) first(opts api.ContainerLogOpts, now time.Time) int {
	first := max(0, l.lines()-logLimit)
	if opts.Tail > 0 {
		first = max(first, l.lines()-opts.Tail)
	}
	since := opts.SinceTime
	if opts.SinceSeconds > 0 {
		since = now.Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	for !since.IsZero() && first < l.lines() {
		if when, _ := l.at(first); !when.Before(since) {
			break
		}
		first++
	}
	return first
}

// Read reads the next lines.
func (l *logReader) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.limit == 0 {
			return 0, io.EOF
		}
		if l.line >= l.lines() {
			if err := l.wait(); err != nil {
				return 0, err
			}
			continue
		}
		when, text := l.at(l.line)
		if l.timestamps {
			text = when.UTC().Format(time.RFC3339Nano) + " " + text
		}
		l.rest = append(l.rest, text+"\n"...)
		if l.limit > 0 {
			l.rest = l.rest[:min(len(l.rest), l.limit)]
			l.limit -= len(l.rest)
		}
		l.line++
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// wait waits for the next line; the end of the run or of the pod is io.EOF.
func (l *logReader) wait() error {
	if _, over := l.end(); over || l.look == nil {
		return io.EOF
	}
	next, _ := l.at(l.line)
	timer := time.NewTimer(max(0, time.Until(next)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
		return io.EOF
	}
	l.now = time.Now()
	m, ok := l.look(l.now)
	if !ok {
		return io.EOF
	}
	if m.run != l.moment.run {
		if m.last == nil {
			return io.EOF
		}
		m = *m.last
	}
	l.moment = m
	return nil
}

// Close ends the log, also a Read that waits.
func (l *logReader) Close() error {
	if l.cancel != nil {
		l.cancel()
	}
	return nil
}
