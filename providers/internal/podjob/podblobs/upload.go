// SPDX-License-Identifier: Apache-2.0

package podblobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
)

const (
	// maxBlock is the largest size of one append.
	maxBlock = 4 << 20
	// maxBlocks is the number of appends to a segment: below the limit of 50,000 for an append blob.
	maxBlocks = 40000
	// keptSegments is the number of kept segments of a run, like podjob's number of kept log files.
	keptSegments = 5
)

// uploader copies logs to append blobs. Each file of a run becomes a segment.
type uploader struct {
	blobs  *azblobs.Container
	prefix func(container string) string
	dir    string

	mu   sync.Mutex
	runs map[string]*upload // guarded by mu; keyed by the path of the file
}

// upload is the progress of the copy of a run.
type upload struct {
	file    os.FileInfo // the file that is being copied
	offset  int64       // in the file
	segment int
	size    int64 // of the segment
	blocks  int
	made    bool // the segment exists
}

func newUploader(c *azblobs.Container, prefix func(string) string, dir string) *uploader {
	return &uploader{blobs: c, prefix: prefix, dir: dir, runs: map[string]*upload{}}
}

// run copies new data until ctx ends.
func (u *uploader) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := u.uploadNew(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "copy logs: %v: it is tried again\n", err)
		}
		failing = err != nil
	}
}

// uploadNew copies all new data.
func (u *uploader) uploadNew(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	files, err := filepath.Glob(filepath.Join(u.dir, "*", "*", "*.log"))
	for _, path := range files {
		err = errors.Join(err, u.uploadRun(ctx, path))
	}
	return err
}

// uploadRun copies the new data of one run. The caller holds mu.
func (u *uploader) uploadRun(ctx context.Context, path string) error {
	r := u.runs[path]
	if r == nil {
		r = &upload{}
		u.runs[path] = r
	}
	var files []*os.File // oldest first
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for i := keptSegments - 1; i >= 0; i-- {
		name := path
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		f, err := os.Open(name)
		if err != nil {
			continue // the file is missing
		}
		info, err := f.Stat()
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if r.file != nil && os.SameFile(r.file, info) {
			for _, older := range files { // older files are already copied
				_ = older.Close()
			}
			files = nil
		}
		files = append(files, f)
	}
	name := segmentsOf{u.prefix(filepath.Base(filepath.Dir(path))), strings.TrimSuffix(filepath.Base(path), ".log")}
	for _, f := range files {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if r.file != nil && !os.SameFile(r.file, info) {
			if err := u.beginSegment(ctx, r, name); err != nil {
				return err
			}
			r.offset = 0
		}
		r.file = info
		if err := u.appendBlocks(ctx, r, f, name); err != nil {
			return err
		}
	}
	return nil
}

// segmentsOf names the segments of a run.
type segmentsOf struct{ prefix, run string }

func (s segmentsOf) segmentOf(segment int) string { return segmentName(s.prefix, s.run, segment) }

// beginSegment begins another segment, and removes an outdated segment.
func (u *uploader) beginSegment(ctx context.Context, r *upload, name segmentsOf) error {
	if old := r.segment + 1 - keptSegments; old >= 0 {
		if err := u.blobs.Delete(ctx, name.segmentOf(old)); err != nil {
			return err
		}
	}
	r.segment, r.size, r.blocks, r.made = r.segment+1, 0, 0, false
	return nil
}

func (u *uploader) appendBlocks(ctx context.Context, r *upload, f *os.File, name segmentsOf) error {
	block := make([]byte, maxBlock)
	for {
		n, err := f.ReadAt(block, r.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return nil
		}
		if r.blocks >= maxBlocks {
			if err := u.beginSegment(ctx, r, name); err != nil {
				return err
			}
		}
		at := name.segmentOf(r.segment)
		if !r.made {
			if err := u.blobs.NewAppend(ctx, at); err != nil {
				return err
			}
			r.made = true
		}
		if err := u.blobs.Append(ctx, at, block[:n], r.size); err != nil {
			return err
		}
		r.offset, r.size, r.blocks = r.offset+int64(n), r.size+int64(n), r.blocks+1
	}
}
