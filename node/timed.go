// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// withTimeout runs one request with its own timeout.
func withTimeout[T any](ctx context.Context, d time.Duration, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return request(ctx)
}
