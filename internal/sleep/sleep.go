// SPDX-License-Identifier: Apache-2.0

// Package sleep waits for a time, or until a context ends.
package sleep

import (
	"context"
	"time"
)

// For waits for d, and reports whether d has passed; false means that the context ended earlier. A d of 0 or less counts as passed.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
