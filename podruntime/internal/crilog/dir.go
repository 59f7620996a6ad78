// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Dir is the directory that all logs are in.
type Dir struct {
	path string
	root *os.Root
}

// OpenDir opens the directory of logs, which must exist.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the directory of logs: %w", err)
	}
	return &Dir{path: path, root: root}, nil
}

// Close closes the directory. Logs that are being read stay open.
func (d *Dir) Close() error { return d.root.Close() }

// Read opens the log of one run of a container. The path is that of the file being written, as the
// runtime says it, or relative to the directory. Previous in opts means nothing here: the caller chose the path.
//
// With Follow, alive says whether the container may still write; nil means it does not. It is asked a few times a second, on
// the goroutine that reads, so it must answer from memory.
//
// The stream may be closed while a Read waits. It also ends with ctx, with its error.
func (d *Dir) Read(ctx context.Context, path string, opts api.ContainerLogOpts, alive func() bool) (io.ReadCloser, error) {
	return nil, nil
}

// TerminationMessage returns the end of a log, for a container that failed without a message: no
// more than 80 lines and 2048 bytes. What prevents it is said in the message.
func (d *Dir) TerminationMessage(ctx context.Context, path string) string { return "" }

// Remove removes a log with all its rotated files. One that does not exist is removed.
func (d *Dir) Remove(path string) error { return nil }
