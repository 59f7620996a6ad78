// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// rotatedLayout is the ending of a rotated file. Such endings sort as their times.
	rotatedLayout = "20060102-150405"
	gz            = ".gz"
	tmp           = ".tmp"
)

// logFile is the current file of a log, relative to the root.
type logFile struct {
	root *os.Root
	name string
}

// fileAt returns the file at that path, which must be below the directory.
func (d *Dir) fileAt(path string) (logFile, error) {
	name := filepath.Clean(path)
	if filepath.IsAbs(name) {
		relative, err := filepath.Rel(d.path, name)
		if err != nil {
			return logFile{}, fmt.Errorf("log %s: %w", path, err)
		}
		name = relative
	}
	if !filepath.IsLocal(name) || name == "." {
		return logFile{}, fmt.Errorf("log %s: it is not below %s, the directory of logs", path, d.path)
	}
	return logFile{d.root, name}, nil
}

// openRegular opens a file of the log: the current file, or a rotated file. It refuses other kinds of files, because
// opening them might wait for ever.
func (l logFile) openRegular(name string) (*os.File, error) {
	info, err := l.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return l.root.Open(name)
}

// rotatedFiles returns the names of the rotated files, oldest first. A file with a compressed copy counts once. unused are the leftovers of an
// interrupted rotation.
func (l logFile) rotatedFiles() (names, unused []string, err error) {
	dir, err := l.root.Open(filepath.Dir(l.name))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, nil, err
	}
	prefix := filepath.Base(l.name) + "."
	for _, e := range entries {
		ending, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(filepath.Dir(l.name), e.Name())
		if strings.HasSuffix(ending, tmp) {
			unused = append(unused, name)
		} else if _, err := time.Parse(rotatedLayout, strings.TrimSuffix(ending, gz)); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names) // a compressed copy comes right after its original
	names = slices.DeleteFunc(names, func(name string) bool {
		twice := !strings.HasSuffix(name, gz) && slices.Contains(names, name+gz)
		if twice {
			unused = append(unused, name)
		}
		return twice
	})
	return names, unused, nil
}

// source is a part of a log, read from its beginning to its end.
type source struct {
	io.Reader
	file *os.File
}

// openRotated opens a rotated file at an offset, even after its compression. For a removed file, the error is fs.ErrNotExist.
func (l logFile) openRotated(name string, offset int64) (source, error) {
	f, err := l.openRegular(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(name, gz) {
		name += gz
		f, err = l.openRegular(name)
	}
	if err != nil {
		return source{}, err
	}
	if !strings.HasSuffix(name, gz) {
		_, err = f.Seek(offset, io.SeekStart)
		return source{f, f}, errors.Join(err, closeIf(err, f))
	}
	z, err := gzip.NewReader(f)
	if err == nil {
		_, err = io.CopyN(io.Discard, z, offset)
	}
	return source{z, f}, errors.Join(err, closeIf(err, f))
}

func closeIf(err error, f *os.File) error {
	if err == nil {
		return nil
	}
	return f.Close()
}
