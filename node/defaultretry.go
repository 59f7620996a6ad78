// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"
)

// MaxRetries is the number of tries of DefaultRetryFunc. The controllers do not use it: without a ShouldRetryFunc, they never give up.
var MaxRetries = 20

// DefaultRetryFunc leaves the delay to the rate limiter and gives up after MaxRetries tries. It is for programs
// that call it; the controllers' own default never gives up.
var DefaultRetryFunc = func(_ context.Context, _ string, timesTried int, _ time.Time, err error) (*time.Duration, error) {
	if timesTried < MaxRetries {
		return nil, nil
	}
	return nil, fmt.Errorf("maximum retries (%d) reached: %w", MaxRetries, err)
}
