// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Dir is the directory of all logs.
type Dir struct {
	path string
	root *os.Root
}

// OpenDir opens the directory of logs, which must exist.
func OpenDir(path string) (*Dir, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the directory of logs: %w", err)
	}
	root, err := os.OpenRoot(whole)
	if err != nil {
		return nil, fmt.Errorf("open the directory of logs: %w", err)
	}
	return &Dir{path: whole, root: root}, nil
}

// Close closes the directory. No read may be in progress.
func (d *Dir) Close() error { return d.root.Close() }

const (
	// messageLines and messageBytes bound the termination message from a log.
	messageLines = 80
	messageBytes = 2048
)

// TerminationMessage returns the end of a log, for a container that failed without a message: at most 80 lines
// and 2048 bytes. An error becomes the message.
func (d *Dir) TerminationMessage(ctx context.Context, path string) string {
	message, err := d.readEnd(ctx, path)
	if err != nil {
		return fmt.Sprintf("Error on reading termination message from logs: %v", err)
	}
	return message
}

func (d *Dir) readEnd(ctx context.Context, path string) (string, error) {
	stream, err := d.Read(ctx, path, api.ContainerLogOpts{Tail: messageLines}, nil)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	kept := make([]byte, 0, 2*messageBytes)
	chunk := make([]byte, messageBytes)
	for {
		n, err := stream.Read(chunk)
		if over := len(kept) + n - messageBytes; over > 0 {
			kept = kept[:copy(kept, kept[min(over, len(kept)):])]
		}
		kept = append(kept, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return string(kept), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Remove removes a log with all its rotated files, if it exists.
func (d *Dir) Remove(path string) error {
	file, err := d.fileAt(path)
	if err != nil {
		return err
	}
	names, unused, err := file.rotatedFiles()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range append(append(names, unused...), file.name) {
		if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove log %s: %w", path, err)
	}
	return nil
}
