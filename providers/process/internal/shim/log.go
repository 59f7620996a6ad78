// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// maxLine is the maximum length of a line. Longer lines are written as partial lines.
const maxLine = 16 << 10

// logFile writes the CRI log format: a timestamp, the stream, F for a full line or P for a partial one, and the
// line.
type logFile struct {
	dir, path string
	// guarded by mu
	mu      sync.Mutex
	f       *os.File
	partial map[string][]byte
	err     error
}

func openLog(dir, path string) (*logFile, error) {
	l := &logFile{dir: dir, path: path, partial: map[string][]byte{}}
	return l, l.reopenFile()
}

// reopenFile opens a new file of the same name, after the old file was renamed.
func (l *logFile) reopenFile() error {
	if l.path == "" {
		return nil
	}
	f, err := openLast(l.dir, l.path)
	if err != nil {
		return fmt.Errorf("open the log of the container: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		l.f.Close()
	}
	l.f = f
	return nil
}

// write adds output of the container to stream.
func (l *logFile) write(stream string, p []byte, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	var out []byte
	rest := append(l.partial[stream], p...)
	for {
		i := bytes.IndexByte(rest, '\n')
		switch {
		case i >= 0 && i <= maxLine:
			out = appendLine(out, now, stream, "F", rest[:i])
			rest = rest[i+1:]
		case len(rest) >= maxLine:
			out = appendLine(out, now, stream, "P", rest[:maxLine])
			rest = rest[maxLine:]
		default:
			l.partial[stream] = bytes.Clone(rest)
			l.flushLines(out)
			return
		}
	}
}

// endStream writes the rest of a stream that has no newline at its end.
func (l *logFile) endStream(stream string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rest := l.partial[stream]; len(rest) > 0 && l.f != nil {
		// A last line without a newline is partial, so that readers do not add one.
		l.flushLines(appendLine(nil, now, stream, "P", rest))
	}
	delete(l.partial, stream)
}

// flushLines writes whole log lines, so that a reader never sees half a line. On a full disk, lines are lost, and
// the container continues.
func (l *logFile) flushLines(out []byte) {
	if len(out) == 0 {
		return
	}
	n, err := l.f.Write(out)
	if err != nil && n > 0 {
		err = errors.Join(err, l.cutPartial(n-1-bytes.LastIndexByte(out[:n], '\n')))
	}
	if err != nil && l.err == nil {
		fmt.Fprintf(os.Stderr, "write the log of the container: %v\n", err)
	}
	l.err = err
}

// cutPartial removes the first n bytes of an incomplete log line, because the next line would be appended to
// them.
func (l *logFile) cutPartial(n int) error {
	info, err := l.f.Stat()
	if err != nil || n == 0 {
		return err
	}
	return l.f.Truncate(info.Size() - int64(n))
}

func appendLine(out []byte, now time.Time, stream, tag string, line []byte) []byte {
	out = now.UTC().AppendFormat(out, "2006-01-02T15:04:05.000000000Z07:00")
	out = append(out, ' ')
	out = append(out, stream...)
	out = append(out, ' ')
	out = append(out, tag...)
	out = append(out, ' ')
	out = append(out, line...)
	return append(out, '\n')
}
