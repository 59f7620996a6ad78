// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"
)

const (
	// maxConfig is the size limit of an image configuration, which is read into memory.
	maxConfig = 4 << 20
	// maxLayers is the maximum number of layers of an image.
	maxLayers = 1000
	// atOnce is the number of layers that are fetched at the same time.
	atOnce = 3
	// stalled is the time without progress after which a pull from a registry fails.
	stalled = 5 * time.Minute
	// maxWindow limits the memory of decompression.
	maxWindow = 128 << 20
)

// layer opens the archive of a layer.
type layer func() (io.ReadCloser, error)

// localLayers returns the layers of a local image.
func localLayers(from []v1.Layer) []layer {
	var layers []layer
	for _, l := range from {
		layers = append(layers, l.Uncompressed)
	}
	return layers
}

// fetchLayers downloads the layers of an image from a registry into dir. It holds no lock, because a registry may
// be slow.
func fetchLayers(ctx context.Context, from []v1.Layer, dir string, limit int64) ([]layer, error) {
	var all int64
	for _, l := range from {
		size, err := l.Size()
		if err != nil {
			return nil, fmt.Errorf("read the sizes of the layers: %w", err)
		}
		if all += size; size < 0 || all > limit {
			return nil, fmt.Errorf("the layers of the image have more than %d bytes, and there is no room for more", limit)
		}
	}
	layers := make([]layer, len(from))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, l := range from {
		path := filepath.Join(dir, "layer-"+strconv.Itoa(i))
		layers[i] = func() (io.ReadCloser, error) { return openLayer(path) }
		group.Go(func() error {
			if err := fetchOne(ctx, l, path); err != nil {
				return fmt.Errorf("fetch layer %d of %d of the image: %w", i+1, len(from), err)
			}
			return nil
		})
	}
	return layers, group.Wait()
}

func fetchOne(ctx context.Context, l v1.Layer, path string) error {
	size, err := l.Size()
	if err != nil {
		return err
	}
	r, err := l.Compressed()
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	// The reader verifies the layer's size and digest at EOF, so read until EOF.
	n, err := io.Copy(f, io.LimitReader(untilDone{ctx, r}, size+1))
	if err == nil && n > size {
		err = fmt.Errorf("it has more than the %d bytes that it should have", size)
	}
	return errors.Join(err, f.Close())
}

// untilDone reads until ctx ends. A pending read from a registry ends, too, because its request has the same
// context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, or returns the cause of the end of ctx.
func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, context.Cause(u.ctx)
	}
	n, err := u.r.Read(b)
	if n > 0 {
		resetWatchdog(u.ctx)
	}
	return n, err
}

// openLayer opens a fetched layer. It detects the compression by the first bytes, not by the media type.
func openLayer(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(f)
	magic, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return readCloser{z, f.Close}, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(2*maxWindow))
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return readCloser{z, func() error { z.Close(); return f.Close() }}, nil
	}
	return readCloser{r, f.Close}, nil
}

type readCloser struct {
	io.Reader
	close func() error
}

// Close closes the source.
func (r readCloser) Close() error { return r.close() }

// errStalled is the cause when watchProgress cancels a pull.
var errStalled = fmt.Errorf("the registry sent nothing for %v", stalled)

type watchdog struct{}

// watchProgress returns a context that is canceled after the time stalled without a resetWatchdog.
func watchProgress(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stalled, func() { cancel(errStalled) })
	return context.WithValue(ctx, watchdog{}, timer), func() { timer.Stop(); cancel(nil) }
}

// resetWatchdog resets the watchdog of ctx, if there is one.
func resetWatchdog(ctx context.Context) {
	if timer, ok := ctx.Value(watchdog{}).(*time.Timer); ok {
		timer.Reset(stalled)
	}
}

// stopWatchdog stops the watchdog of ctx, because the registry does not cause later delays.
func stopWatchdog(ctx context.Context) {
	if timer, ok := ctx.Value(watchdog{}).(*time.Timer); ok {
		timer.Stop()
	}
}
