// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// reader is the requested part of a log. It has no goroutine: Read reads the files.
type reader struct {
	ctx    context.Context // of the request
	log    logFile
	alive  func() bool // nil without Follow
	since  time.Time
	stamps bool

	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex // held by Read; Close waits for the lock before it closes files
	todo   []part
	live   *os.File // the file being written, unless Read is reading it
	size   int64    // bytes to read from live, without Follow
	newest string   // rotated file when live was opened
	file   *os.File // the file being read
	isLive bool     // file is the one being written
	lines  lines
	skip   int   // number of lines to skip
	left   int64 // the remaining bytes of the limit
	err    error

	last   bool // the container has ended, and this is the last read
	behind bool // file was rotated, and this is the last read of it

	shape
}

// Read opens the log of one run of a container. The path is the path of the file being written, as the runtime reports it, or relative to the
// directory. Previous in opts is ignored, because the caller chose the path.
//
// With Follow, alive reports whether the container may still write. Nil means that it does not. alive is called several times a second by the
// goroutine that reads, so it must not block.
//
// The stream may be closed while a Read waits. It also ends with ctx, and returns its error. A log without any file is an error for which
// errors.Is(err, fs.ErrNotExist).
func (d *Dir) Read(ctx context.Context, path string, opts api.ContainerLogOpts, alive func() bool) (io.ReadCloser, error) {
	file, err := d.fileAt(path)
	if err != nil {
		return nil, err
	}
	r := &reader{ctx: ctx, log: file, stamps: opts.Timestamps, since: opts.SinceTime, left: -1, closed: make(chan struct{})}
	r.atStart = true
	if opts.SinceSeconds > 0 {
		r.since = time.Now().Add(-time.Duration(opts.SinceSeconds) * time.Second)
	}
	if opts.LimitBytes > 0 {
		r.left = int64(opts.LimitBytes)
	}
	if opts.Follow {
		if r.alive = alive; alive == nil {
			r.alive = func() bool { return false }
		}
	}
	p, err := file.planRead(tailOf(opts), r.since)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	r.todo, r.live, r.size, r.newest = p.parts, p.live, p.size, p.newest
	return r, nil
}

// tailOf returns the tail of opts, or nil for all lines.
func tailOf(opts api.ContainerLogOpts) *tail {
	if opts.Tail > 0 {
		return &tail{want: opts.Tail}
	}
	return nil
}

// Read returns the available content, and waits only if there is none.
func (r *reader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) && r.err == nil {
		if len(r.pending) > 0 {
			n += r.copyPending(p[n:])
			continue
		}
		r.err = r.advanceRead(n == 0)
		if errors.Is(r.err, errMustRead) {
			r.err = nil
			return n, nil
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// copyPending copies the pending output, up to the limit.
func (r *reader) copyPending(p []byte) int {
	if r.left >= 0 {
		p = p[:min(int64(len(p)), r.left)]
	}
	n := r.takePending(p)
	if r.left >= 0 {
		if r.left -= int64(n); r.left == 0 {
			r.err = io.EOF
		}
	}
	return n
}

// advanceRead fills pending, or makes progress towards it.
func (r *reader) advanceRead(mayRead bool) error {
	if r.file == nil {
		if !mayRead {
			return errMustRead
		}
		return r.openNext()
	}
	if mayRead {
		if err := r.stopReason(); err != nil {
			return err
		}
	}
	piece, err := r.lines.nextLine(mayRead)
	switch {
	case err == nil:
		r.showPiece(piece)
		return nil
	case !errors.Is(err, io.EOF):
		return err // also errMustRead
	case r.isLive && r.alive != nil:
		return r.awaitMore()
	}
	if rest := r.lines.takeRest(); len(rest) > 0 {
		r.showPiece(rest)
		r.inLine = false
		return nil
	}
	return r.closeFile()
}

// stopReason returns the reason why reading ends before the log does.
func (r *reader) stopReason() error {
	select {
	case <-r.closed:
		return os.ErrClosed
	default:
		return r.ctx.Err()
	}
}

// showPiece outputs a piece of a line, unless the line is skipped.
func (r *reader) showPiece(piece []byte) {
	begins := !r.inLine
	if begins {
		e, ok := parseLine(piece)
		r.keep = ok && r.skip == 0 && !e.at.Before(r.since)
		if ok && r.skip > 0 && !e.part {
			r.skip--
		}
		if r.keep {
			r.beginEntry(e, r.stamps)
			piece = piece[len(piece)-len(e.text)-newlineLength(piece):]
		}
	}
	r.inLine = !bytes.HasSuffix(piece, newline)
	if r.keep {
		r.addPiece(piece)
	}
}

// newlineLength returns the number of newline bytes at the end of a piece.
func newlineLength(piece []byte) int {
	if bytes.HasSuffix(piece, newline) {
		return 1
	}
	return 0
}

// closeFile closes the file that was read.
func (r *reader) closeFile() error {
	err := r.file.Close()
	r.file = nil
	if err == nil && r.isLive {
		return io.EOF
	}
	return err
}

// openNext opens the next file. It skips a file that was removed in the meantime.
func (r *reader) openNext() error {
	if err := r.stopReason(); err != nil {
		return err
	}
	if len(r.todo) > 0 {
		part := r.todo[0]
		r.todo = r.todo[1:]
		src, err := r.log.openRotated(part.name, part.offset)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		r.file, r.skip = src.file, part.skip
		r.lines.resetSource(src)
		return nil
	}
	if r.live == nil {
		return r.awaitLive()
	}
	r.file, r.live, r.isLive, r.skip = r.live, nil, true, 0
	if r.alive != nil {
		r.lines.resetSource(r.file)
		return nil
	}
	at, err := r.file.Seek(0, io.SeekCurrent)
	r.lines.resetSource(io.LimitReader(r.file, r.size-at))
	return err
}

// Close ends a waiting Read, and all later calls.
func (r *reader) Close() error {
	r.once.Do(func() { close(r.closed) })
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, f := range []*os.File{r.file, r.live} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	r.file, r.live, r.todo = nil, nil, nil
	r.err = os.ErrClosed
	return errors.Join(errs...)
}
