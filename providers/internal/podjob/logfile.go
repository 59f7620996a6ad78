// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A log has up to KeptLogs older files in the same directory, of at most maxLog bytes each. FILE.1 is the newest.
const (
	KeptLogs = 4
	maxLog   = 9 << 20 // less than podruntime's limit for rotation
)

// logFile writes the output of a container in the format of the CRI.
type logFile struct {
	path string

	mu     sync.Mutex
	file   *os.File // guarded by mu; nil if it could not be opened, or is closed
	size   int64    // guarded by mu
	closed bool     // guarded by mu
}

func openLog(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	dropRotated(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &logFile{path: path, file: f, size: info.Size()}, nil
}

// dropRotated removes the rotated files of earlier runs whose newest file was removed.
func dropRotated(path string) {
	older, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.log.[0-9]"))
	for _, f := range older {
		if _, err := os.Lstat(strings.TrimSuffix(f, filepath.Ext(f))); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(f) // the next run retries
		}
	}
}

// copy writes the data of in until its end, and calls seen with the same data.
func (l *logFile) copy(stream string, in io.Reader, seen func([]byte)) {
	r := bufio.NewReaderSize(in, 16<<10)
	for {
		part, err := r.ReadSlice('\n')
		if len(part) > 0 {
			seen(part)
			tag := "P"
			if part[len(part)-1] == '\n' {
				tag, part = "F", part[:len(part)-1]
			}
			l.write(fmt.Appendf(nil, "%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream, tag, part))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (l *logFile) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return
	case l.file == nil:
		l.open()
	case l.size+int64(len(line)) > maxLog:
		l.rotate()
	}
	if l.file == nil {
		return
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		fmt.Fprintf(os.Stderr, "write log: %v\n", err)
	}
}

// rotate begins a new file. The caller holds mu.
func (l *logFile) rotate() {
	_ = l.file.Close()
	for i := KeptLogs; i > 1; i-- {
		_ = os.Rename(fmt.Sprintf("%s.%d", l.path, i-1), fmt.Sprintf("%s.%d", l.path, i)) // the file may be missing
	}
	_ = os.Rename(l.path, l.path+".1")
	l.open()
}

// open opens the file. If that fails, the next line tries again. The caller holds mu.
func (l *logFile) open() {
	l.file, l.size = nil, 0
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "open log: %v\n", err)
		return
	}
	if info, err := f.Stat(); err == nil {
		l.size = info.Size() // the old file still exists if the rename failed
	}
	l.file = f
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}
