// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
)

// compressRotated replaces a rotated file by a compressed file, atomically.
func (l logFile) compressRotated(ctx context.Context, name string) (err error) {
	from, err := l.openRegular(name)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	unfinished := name + tmp
	defer func() {
		if err != nil {
			_ = l.root.Remove(unfinished) // otherwise the next rotation removes the file
		}
	}()
	if err := l.writeGzip(ctx, unfinished, from, info.Mode().Perm()); err != nil {
		return err
	}
	// Keep the time of the last line, because readers skip files by it.
	if err := l.root.Chtimes(unfinished, info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	if err := l.root.Rename(unfinished, name+gz); err != nil {
		return err
	}
	return l.root.Remove(name)
}

func (l logFile) writeGzip(ctx context.Context, name string, from io.Reader, mode os.FileMode) (err error) {
	to, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	z := gzip.NewWriter(to)
	if _, err := io.Copy(z, contextReader{ctx, from}); err != nil {
		return err
	}
	return z.Close()
}

// contextReader fails reads after its context has ended.
type contextReader struct {
	ctx    context.Context
	source io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.source.Read(p)
}
