// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// part is a file, or the end of a file, to read.
type part struct {
	name   string
	offset int64
	skip   int // number of lines to skip
}

// plan has the parts of a log to read, and the state of the log.
type plan struct {
	parts  []part   // rotated files, the oldest first
	live   *os.File // at the offset of the part; nil if the file does not exist
	size   int64    // size of live
	newest string   // of all rotated files, without .gz
}

// findFiles opens the file that is being written and lists the other files. The result is consistent: there was no rotation in between.
func (l logFile) findFiles() (p plan, names []string, err error) {
	for {
		p.live, err = l.openRegular(l.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return plan{}, nil, err
		}
		if names, _, err = l.rotatedFiles(); err != nil {
			return plan{}, nil, errors.Join(err, p.close())
		}
		same, err := l.isCurrent(p.live)
		if err != nil {
			return plan{}, nil, errors.Join(err, p.close())
		}
		if same {
			break
		}
		if err := p.close(); err != nil {
			return plan{}, nil, err
		}
	}
	if len(names) > 0 {
		p.newest = strings.TrimSuffix(names[len(names)-1], gz)
	}
	return p, names, nil
}

// isCurrent reports whether f is the current file. A nil f is a missing file.
func (l logFile) isCurrent(f *os.File) (bool, error) {
	now, err := l.root.Stat(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return f == nil, nil
	}
	if err != nil || f == nil {
		return false, err
	}
	was, err := f.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(now, was), nil
}

func (p *plan) close() error {
	if p.live == nil {
		return nil
	}
	return p.live.Close()
}

// planRead finds the parts for a tail or, without a tail, the parts since a time.
func (l logFile) planRead(t *tail, since time.Time) (plan, error) {
	p, names, err := l.findFiles()
	if err != nil {
		return plan{}, err
	}
	if p.live == nil && len(names) == 0 {
		return plan{}, &fs.PathError{Op: "open", Path: l.name, Err: fs.ErrNotExist}
	}
	if err := l.chooseParts(&p, names, t, since); err != nil {
		return plan{}, errors.Join(err, p.close())
	}
	return p, nil
}

func (l logFile) chooseParts(p *plan, names []string, t *tail, since time.Time) error {
	if err := p.measureLive(t); err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if t != nil && t.isDone() {
			break
		}
		part, wanted, err := l.choosePart(name, t, since)
		if err != nil {
			return err
		}
		if wanted {
			p.parts = append(p.parts, part)
		}
	}
	slices.Reverse(p.parts)
	return nil
}

// measureLive sets size, and sets live to the beginning of the tail.
func (p *plan) measureLive(t *tail) error {
	if p.live == nil {
		return nil
	}
	info, err := p.live.Stat()
	if err != nil {
		return err
	}
	p.size = info.Size()
	if t == nil {
		return nil
	}
	offset, err := t.findStart(p.live, p.size)
	if err != nil {
		return err
	}
	_, err = p.live.Seek(offset, 0)
	return err
}

// choosePart decides whether to read a rotated file. It skips a file whose last write was before since.
func (l logFile) choosePart(name string, t *tail, since time.Time) (p part, wanted bool, err error) {
	p.name = name
	src, err := l.openRotated(name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil // the file was removed to make room
	}
	if err != nil {
		return p, false, err
	}
	defer src.file.Close()
	info, err := src.file.Stat()
	if err != nil || info.ModTime().Before(since) {
		return p, false, err
	}
	switch {
	case t == nil:
	case src.Reader == src.file:
		p.offset, err = t.findStart(src.file, info.Size())
	default:
		p.skip, err = t.countSkipped(src)
	}
	return p, true, err
}
