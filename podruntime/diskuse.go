// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// DiskUse returns the bytes of the blocks and the number of the files below a container's directory, at any
// depth, in time in proportion to the number of files. When ctx ends, it returns the count so far, and an error.
func DiskUse(ctx context.Context, dir string) (bytes, inodes int64, err error) {
	use, err := volumes.Measure(ctx, dir)
	return use.Bytes, use.Inodes, err
}
