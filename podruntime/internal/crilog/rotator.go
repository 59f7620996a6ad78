// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Container is a container with a growing log.
type Container struct {
	ID   string
	Path string // as for Dir.Read
}

// Rotator keeps the logs of running containers from growing without bound.
type Rotator struct {
	// Dir has the logs. Required.
	Dir *Dir
	// Running returns the running containers. Required.
	Running func(context.Context) ([]Container, error)
	// Reopen makes the runtime write to a new file, as ReopenContainerLog of a cri.RuntimeService. Required.
	Reopen func(ctx context.Context, containerID string) error
	// MaxSize is the size in bytes at which a file is rotated; 0 means 10 MiB.
	MaxSize int64
	// MaxFiles is the number of files of one container, at least 2; 0 means 5.
	MaxFiles int
	// Every is the interval of checks of the files; 0 means 10 seconds.
	Every time.Duration
}

// Run rotates logs until ctx ends. It logs the failure of a log, and retries at the next check.
func (r *Rotator) Run(ctx context.Context) {
	every := r.Every
	if every <= 0 {
		every = 10 * time.Second
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := r.rotateAll(ctx); err != nil && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("logs of containers were not rotated")
		}
	}
}

// rotateAll checks all logs once.
func (r *Rotator) rotateAll(ctx context.Context) error {
	running, err := r.Running(ctx)
	if err != nil {
		return fmt.Errorf("list running containers: %w", err)
	}
	var errs []error
	for _, c := range running {
		if ctx.Err() != nil {
			break
		}
		if err := r.rotateLong(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("log %s: %w", c.Path, err))
		}
	}
	return errors.Join(errs...)
}

// rotateLong rotates the log of one container if it is too long.
func (r *Rotator) rotateLong(ctx context.Context, c Container) error {
	file, err := r.Dir.fileAt(c.Path)
	if err != nil {
		return err
	}
	info, err := file.root.Lstat(file.name)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Reopen(ctx, c.ID) // a rotation was interrupted, or the file was removed
	}
	if err != nil {
		return err
	}
	limit := r.MaxSize
	if limit <= 0 {
		limit = 10 << 20
	}
	if !info.Mode().IsRegular() || info.Size() < limit {
		return nil
	}
	if err := r.makeRoom(ctx, file); err != nil {
		return err
	}
	return r.rotateLog(ctx, c, file)
}

// makeRoom removes the oldest files and compresses the others. With the current file and its next rotated file,
// the number of files is then the maximum.
func (r *Rotator) makeRoom(ctx context.Context, file logFile) error {
	names, unused, err := file.rotatedFiles()
	if err != nil {
		return err
	}
	files := r.MaxFiles
	if files <= 0 {
		files = 5
	}
	over := max(0, len(names)-max(0, files-2))
	for _, name := range append(unused, names[:over]...) {
		if err := file.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range names[over:] {
		if strings.HasSuffix(name, gz) {
			continue
		}
		if err := file.compressRotated(ctx, name); err != nil {
			return fmt.Errorf("compress: %w", err)
		}
	}
	return nil
}

// rotateLog renames the file and makes the runtime begin a new one. It does not compress the old file yet: because the runtime may still write to it.
func (r *Rotator) rotateLog(ctx context.Context, c Container, file logFile) error {
	to := file.name + "." + time.Now().UTC().Format(rotatedLayout)
	if _, err := file.root.Lstat(to); err == nil {
		return nil // a second rotation within a second: left to the next check
	}
	if err := file.root.Rename(file.name, to); err != nil {
		return err
	}
	if err := r.Reopen(ctx, c.ID); err != nil {
		return errors.Join(fmt.Errorf("reopen: %w", err), file.root.Rename(to, file.name))
	}
	return nil
}
