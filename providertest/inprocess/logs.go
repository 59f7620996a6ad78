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
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// log is the output of a run.
type log struct {
	mu      sync.Mutex
	lines   []logs.Line   // guarded by mu
	part    []byte        // guarded by mu; of a line without its end
	over    bool          // guarded by mu
	changed chan struct{} // guarded by mu; closed when there is more
}

func newLog() *log { return &log{changed: make(chan struct{})} }

// Write records the output of a program.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			break
		}
		l.lines = append(l.lines, logs.Line{At: time.Now(), Text: bytes.Clone(l.part[:i+1])})
		l.part = l.part[i+1:]
	}
	l.wakeReaders()
	return len(b), nil
}

func (l *log) markComplete() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.lines = append(l.lines, logs.Line{At: time.Now(), Text: l.part})
		l.part = nil
	}
	l.over = true
	l.wakeReaders()
}

// wakeReaders wakes the waiting readers. The caller holds mu.
func (l *log) wakeReaders() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// linesFrom returns the lines from the n-th on, whether the log is complete, and a channel that is closed when more
// lines come.
func (l *log) linesFrom(n int) (lines []logs.Line, over bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[n:len(l.lines):len(l.lines)], l.over, l.changed
}

// GetContainerLogs returns the log of a container.
func (p *Provider) GetContainerLogs(ctx context.Context, namespace, podName, containerName string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	k, err := p.findContainer(namespace, podName, containerName)
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
	return logs.NewReader(ctx, &source{log: r.log}, opts, time.Now()), nil
}

// source reads the lines of a log from a given line on.
type source struct {
	log  *log
	next int
}

// Next returns the next lines.
func (s *source) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		lines, over, changed := s.log.linesFrom(s.next)
		s.next += len(lines)
		switch {
		case len(lines) > 0:
			return lines, nil
		case over, !wait:
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// findContainer returns a container of a pod.
func (p *Provider) findContainer(namespace, podName, name string) (*container, error) {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.findPod(namespace, podName)
	if q == nil {
		return nil, errdefs.NotFoundf("pod %s/%s is not there", namespace, podName)
	}
	if k := q.findContainer(name); k != nil {
		return k, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s has no container %q", namespace, podName, name)
}
