// SPDX-License-Identifier: Apache-2.0

// Package apiwatch knows whether the API server can be reached: it tells silence from refusal, and lists and
// watches through outages.
//
// The guarantee: an error that the API server made on purpose, about the request itself, is an answer and
// reaches the caller.
//
// The surprise: "too many requests" is such an answer. The API server is there, and an earlier request than it
// asks for makes things worse.
package apiwatch

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unanswered reports whether the error of a client says that the API server could not be reached, or could
// handle no request at that time. The end of the caller's own context says neither.
func Unanswered(err error) bool {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return false
	case apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err):
		return true
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status)
}
