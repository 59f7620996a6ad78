// SPDX-License-Identifier: Apache-2.0

package errdefs

import (
	"errors"
	"fmt"
)

// ErrInvalidInput is implemented by errors about a request that can never succeed. The result of InvalidInput counts, not the type.
type ErrInvalidInput interface {
	InvalidInput() bool
	error
}

type invalidInputError struct{ kindError }

func (*invalidInputError) InvalidInput() bool { return true }

// InvalidInput returns a new error of the kind invalid-input with the message msg.
func InvalidInput(msg string) error {
	return &invalidInputError{kindError{errors.New(msg)}}
}

// InvalidInputf is InvalidInput with a formatted message; a %w verb wraps.
func InvalidInputf(format string, args ...any) error {
	return &invalidInputError{kindError{fmt.Errorf(format, args...)}}
}

// AsInvalidInput gives err the kind invalid-input and keeps its message; err stays visible to errors.Is, errors.As and Cause. A nil err stays nil.
func AsInvalidInput(err error) error {
	if err == nil {
		return nil
	}
	return &invalidInputError{kindError{err}}
}

// IsInvalidInput reports whether err is of the kind invalid-input. The outermost error that implements
// ErrInvalidInput decides; of several joined errors, one is enough. It is false for nil.
func IsInvalidInput(err error) bool {
	return findKind(err, ErrInvalidInput.InvalidInput)
}
