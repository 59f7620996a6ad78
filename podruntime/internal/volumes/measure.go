// SPDX-License-Identifier: Apache-2.0

package volumes

import "context"

// Measure counts the files below a directory that a container may write to, at any depth. An error beside a use
// with AtLeast says why the count is incomplete.
func Measure(ctx context.Context, dir string) (Use, error) { return measureDir(ctx, dir) }
