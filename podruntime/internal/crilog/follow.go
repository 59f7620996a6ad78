// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// followEvery is the interval of checks of a followed file. File notifications would be faster, but their number per user is limited, and network
// file systems send none.
const followEvery = 100 * time.Millisecond

// awaitMore is called at the end of the current file. It returns nil when there may be more to read.
func (r *reader) awaitMore() error {
	same, err := r.log.isCurrent(r.file)
	if err != nil {
		return err
	}
	exists, err := r.hasCurrent()
	if err != nil {
		return err
	}
	switch {
	case !same && exists && r.behind:
		return r.followFiles()
	case !same && exists:
		// The runtime may still write to this file between making the new file and writing to it.
		r.behind = true
		return r.pauseRead()
	case r.last:
		r.alive = nil // only an unfinished line is left
		return nil
	case !r.alive():
		// The container may have written after the last read and before its end.
		r.last = true
		return nil
	default:
		return r.pauseRead()
	}
}

// hasCurrent reports whether the current file exists: it is missing between two steps of a rotation.
func (r *reader) hasCurrent() (bool, error) {
	none, err := r.log.isCurrent(nil)
	return !none, err
}

// followFiles continues with the files after the last read file.
func (r *reader) followFiles() error {
	p, names, err := r.log.findFiles()
	if err != nil {
		return err
	}
	came := 0
	for came < len(names) && strings.TrimSuffix(names[came], gz) <= r.newest {
		came++
	}
	// The first new file is the file that was read.
	for _, name := range names[min(came+1, len(names)):] {
		r.todo = append(r.todo, part{name: name})
	}
	if rest := r.lines.takeRest(); len(rest) > 0 {
		r.showPiece(rest) // the runtime stopped in the middle of the line
		r.inLine = false
	}
	old := r.file
	r.file, r.isLive, r.live, r.newest = nil, false, p.live, p.newest
	r.behind, r.last = false, false
	return old.Close()
}

// awaitLive waits for the current file, which a rotation has moved away.
func (r *reader) awaitLive() error {
	if r.alive == nil {
		return io.EOF
	}
	ended := !r.alive()
	f, err := r.log.openRegular(r.log.name)
	switch {
	case err == nil:
		r.live = f
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	case ended:
		return io.EOF
	default:
		return r.pauseRead()
	}
}

// pauseRead waits a little, or returns the reason why reading ends.
func (r *reader) pauseRead() error {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.closed:
		return os.ErrClosed
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}
