// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// memoryLog is what one run of a container wrote.
type memoryLog struct {
	mu    sync.Mutex
	lines []logs.Line   // guarded by mu
	part  []byte        // guarded by mu; of a line without its end
	over  bool          // guarded by mu
	more  chan struct{} // guarded by mu; closed when there is more
}

func newMemoryLog() *memoryLog { return &memoryLog{more: make(chan struct{})} }

// Write takes down what is printed.
func (l *memoryLog) Write(b []byte) (int, error) {
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
	l.tell()
	return len(b), nil
}

// tell wakes those who follow. mu is held.
func (l *memoryLog) tell() {
	close(l.more)
	l.more = make(chan struct{})
}

func (l *memoryLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.lines = append(l.lines, logs.Line{At: time.Now(), Text: append(l.part, '\n')})
	}
	l.part, l.over = nil, true
	l.tell()
}

// logs returns the log of the present run, or of the one before.
func (k *memoryContainer) logs(previous bool) (logs.Source, error) {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	log := k.log
	if previous && k.now.State != stateWaiting {
		log = k.last
	}
	if log == nil {
		return nil, errdefs.InvalidInputf("container %s has no such run", k.spec.Name)
	}
	return &memoryReader{log: log}, nil
}

// memoryReader gives the lines of a log.
type memoryReader struct {
	log  *memoryLog
	next int // line
}

// Next returns the lines that are there, or waits for them if that is asked for.
func (r *memoryReader) Next(ctx context.Context, wait bool) ([]logs.Line, error) {
	for {
		r.log.mu.Lock()
		lines, over, more := r.log.lines[r.next:], r.log.over, r.log.more
		r.log.mu.Unlock()
		r.next += len(lines)
		switch {
		case len(lines) > 0:
			return lines, nil
		case over, !wait:
			return nil, io.EOF
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
