// SPDX-License-Identifier: Apache-2.0

package apiwatch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUnanswered(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{&url.Error{Op: "Get", URL: "https://x", Err: syscall.ECONNREFUSED}, true},
		{fmt.Errorf("write: %w", context.DeadlineExceeded), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{apierrors.NewInternalError(errors.New("etcd has no leader")), true},
		{apierrors.NewServerTimeout(pods, "patch", 1), true},
		{context.Canceled, false},
		{apierrors.NewTooManyRequests("busy", 1), false},
		{apierrors.NewForbidden(pods, "p", nil), false},
		{fmt.Errorf("write: %w", apierrors.NewNotFound(pods, "p")), false},
		{apierrors.NewConflict(pods, "p", nil), false},
	} {
		if got := Unanswered(tt.err); got != tt.want {
			t.Errorf("Unanswered(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}
