// SPDX-License-Identifier: Apache-2.0

// Package apiwatch distinguishes an unreachable API server from a refusal, and continues lists and watches after outages.
//
// The guarantee: an error of the API server about the request itself counts as an answer and is returned to the caller.
//
// Note: "too many requests" counts as an answer, because the API server is reachable, and a retry before the requested delay would increase
// its load.
package apiwatch

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Unanswered reports whether the error of a client means that the API server was unreachable, or unable to handle requests. The end of the caller's
// own context means neither.
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
