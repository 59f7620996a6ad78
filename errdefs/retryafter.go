// SPDX-License-Identifier: Apache-2.0

package errdefs

import "time"

// ErrRetryAfter is implemented by errors with a retry delay, such as the response of a throttling backend (429 with Retry-After). Zero means unknown.
type ErrRetryAfter interface {
	RetryAfter() time.Duration
	error
}

type retryAfterError struct {
	kindError
	after time.Duration
}

func (e *retryAfterError) RetryAfter() time.Duration { return e.after }

// RetryAfter adds d to err as the minimum delay of a retry. It keeps the message and the kinds of err. A nil err stays nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{kindError{err}, d}
}

// RetryAfterOf returns the retry delay of err, and false if err has none. The outermost ErrRetryAfter decides; of several joined errors, the longest
// time counts.
func RetryAfterOf(err error) (after time.Duration, says bool) {
	findKind(err, func(e ErrRetryAfter) bool {
		after = max(after, e.RetryAfter())
		return after > 0
	})
	return after, after > 0
}
