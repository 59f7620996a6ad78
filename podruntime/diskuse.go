// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// DiskUse returns the allocated bytes and the number of files below a container's directory, at any depth. Its duration is proportional to the number
// of files. When ctx ends, it returns the count so far, and an error.
func DiskUse(ctx context.Context, dir string) (bytes, inodes int64, err error) {
	use, err := volumes.Measure(ctx, dir)
	return use.Bytes, use.Inodes, err
}
