// SPDX-License-Identifier: Apache-2.0

package volumes

import "context"

// Measure counts the files below a directory that a container may write to, at any depth. If the count is incomplete, AtLeast is set, and the error
// has the reason.
func Measure(ctx context.Context, dir string) (Use, error) { return measureDir(ctx, dir) }
