// SPDX-License-Identifier: Apache-2.0

package volumes

import "context"

// Measure counts what is below a directory that a container may write to, however deep. An error beside a use with AtLeast
// says why the count is not complete.
func Measure(ctx context.Context, dir string) (Use, error) { return measure(ctx, dir) }
