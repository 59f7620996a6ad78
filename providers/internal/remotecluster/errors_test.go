// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNoAnswer(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"nobody is there":           {errors.New("connection refused"), true},
		"the store is away":         {apierrors.NewInternalError(errors.New("etcdserver: no leader")), true},
		"overload":                  {apierrors.NewTooManyRequests("later", 1), true},
		"a credential that expired": {apierrors.NewUnauthorized("expired"), true},
		"unavailable":               {fmt.Errorf("write: %w", apierrors.NewServiceUnavailable("restarting")), true},
		"a right that is missing":   {apierrors.NewForbidden(secrets, "a", errors.New("no")), false},
		"a name that is taken":      {apierrors.NewAlreadyExists(secrets, "a"), false},
		"a webhook of one namespace": {fmt.Errorf("write: %w",
			apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example.com": failed to call webhook: context deadline exceeded`))), false},
	} {
		if got := noAnswer(tt.err); got != tt.want {
			t.Errorf("%s: no answer: %t, want %t", name, got, tt.want)
		}
	}
}
