// SPDX-License-Identifier: Apache-2.0

package errdefs

import (
	"errors"
	"fmt"
)

// ErrNotFound is implemented by errors about a missing object. The result of NotFound counts, not the type.
type ErrNotFound interface {
	NotFound() bool
	error
}

type notFoundError struct{ kindError }

func (*notFoundError) NotFound() bool { return true }

// NotFound returns a new error of the kind not-found with the message msg.
func NotFound(msg string) error {
	return &notFoundError{kindError{errors.New(msg)}}
}

// NotFoundf is NotFound with a formatted message; a %w verb wraps.
func NotFoundf(format string, args ...any) error {
	return &notFoundError{kindError{fmt.Errorf(format, args...)}}
}

// AsNotFound gives err the kind not-found and keeps its message; err stays visible to errors.Is, errors.As and Cause. A nil err stays nil.
func AsNotFound(err error) error {
	if err == nil {
		return nil
	}
	return &notFoundError{kindError{err}}
}

// IsNotFound reports whether err is of the kind not-found. The outermost error that implements ErrNotFound
// decides; of several joined errors, one is enough. It is false for nil.
func IsNotFound(err error) bool {
	return findKind(err, ErrNotFound.NotFound)
}
