// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// line is a line of a log, with its end.
type line struct {
	at   time.Time
	text []byte
}

// log is what a run wrote.
type log struct {
	mu      sync.Mutex
	lines   []line        // guarded by mu
	part    []byte        // guarded by mu; of a line without its end
	over    bool          // guarded by mu
	changed chan struct{} // guarded by mu; closed when there is more
}

func newLog() *log { return &log{changed: make(chan struct{})} }

// Write takes down what a program prints.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			break
		}
		l.lines = append(l.lines, line{time.Now(), bytes.Clone(l.part[:i+1])})
		l.part = l.part[i+1:]
	}
	l.tell()
	return len(b), nil
}

func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.lines = append(l.lines, line{time.Now(), l.part})
		l.part = nil
	}
	l.over = true
	l.tell()
}

// tell wakes those who wait. mu is held.
func (l *log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// from returns the lines from the n-th on, whether more can come, and what is closed when they do.
func (l *log) from(n int) (lines []line, over bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[n:len(l.lines):len(l.lines)], l.over, l.changed
}

// GetContainerLogs returns the log of a container.
func (p *Provider) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	k, err := p.find(namespace, podName, containerName)
	if err != nil {
		return nil, err
	}
	c := p.cloud
	c.mu.Lock()
	r := k.run
	if opts.Previous {
		if r = k.last; k.waits {
			r = k.run
		}
	}
	c.mu.Unlock()
	switch {
	case r == nil && opts.Previous:
		return nil, errdefs.InvalidInputf("container %s of pod %s/%s has no previous run", containerName, namespace, podName)
	case r == nil:
		return nil, errdefs.InvalidInputf("container %s of pod %s/%s is waiting to start", containerName, namespace, podName)
	}
	ctx, cancel := context.WithCancel(ctx)
	since := opts.SinceTime
	if opts.SinceSeconds > 0 {
		since = time.Now().Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	return &logReader{ctx: ctx, cancel: cancel, log: r.log, opts: opts, since: since, first: true}, nil
}

// logReader writes lines as they are read.
type logReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    *log
	opts   api.ContainerLogOpts
	since  time.Time
	first  bool
	next   int
	sent   int
	rest   []byte
}

// Read returns what is there, or waits for it if that is asked for.
func (r *logReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		lines, over, changed := r.log.from(r.next)
		r.next += len(lines)
		for len(lines) > 0 && lines[0].at.Before(r.since) {
			lines = lines[1:]
		}
		if tail := r.opts.Tail; r.first && tail > 0 && len(lines) > tail {
			lines = lines[len(lines)-tail:]
		}
		r.first = false
		for _, l := range lines {
			if r.opts.Timestamps {
				r.rest = append(l.at.UTC().AppendFormat(r.rest, time.RFC3339Nano), ' ')
			}
			r.rest = append(r.rest, l.text...)
		}
		if limit := r.opts.LimitBytes; limit > 0 && r.sent+len(r.rest) > limit {
			r.rest = r.rest[:limit-r.sent]
			if len(r.rest) == 0 {
				return 0, io.EOF
			}
		}
		if len(r.rest) > 0 {
			break
		}
		if over || !r.opts.Follow {
			return 0, io.EOF
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(b, r.rest)
	r.rest, r.sent = r.rest[n:], r.sent+n
	return n, nil
}

// Close ends the reader.
func (r *logReader) Close() error {
	r.cancel()
	return nil
}

// find returns a container of a pod.
func (p *Provider) find(namespace, podName, name string) (*container, error) {
	c := p.cloud
	if err := c.request(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.find(namespace, podName)
	if q == nil {
		return nil, errdefs.NotFoundf("pod %s/%s is not there", namespace, podName)
	}
	if k := q.container(name); k != nil {
		return k, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, podName, name)
}
