// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"bytes"
	"sync"
	"time"
)

// runLog is the output of one run of a container.
type runLog struct {
	mu   sync.Mutex
	done []line // guarded by mu
	part []byte // guarded by mu; an incomplete line
}

type line struct {
	at   time.Time
	text []byte
}

// Write records the output.
func (l *runLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, b...)
	for {
		i := bytes.IndexByte(l.part, '\n')
		if i < 0 {
			return len(b), nil
		}
		l.done = append(l.done, line{at: time.Now(), text: bytes.Clone(l.part[:i+1])})
		l.part = l.part[i+1:]
	}
}

// textSince returns the lines since a time, each with its timestamp.
func (l *runLog) textSince(since time.Time) (text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.done
	if len(l.part) > 0 {
		all = append(all[:len(all):len(all)], line{at: time.Now(), text: l.part})
	}
	for _, one := range all {
		if !one.at.Before(since) {
			text = append(append(one.at.UTC().AppendFormat(text, time.RFC3339Nano), ' '), one.text...)
		}
	}
	return text
}

// logOf returns the log of the current run, or of the previous run, or nil if there was none.
func (k *container) logOf(previous bool) (log *runLog) {
	k.set(func() {
		if log = k.log; previous && k.now.State != stateWaiting {
			log = k.last
		}
	})
	return log
}
