// SPDX-License-Identifier: Apache-2.0

package errdefs_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// tooMany is an error type that a provider may define without importing errdefs.
type tooMany struct{ wait time.Duration }

func (tooMany) Error() string               { return "too many requests" }
func (e tooMany) RetryAfter() time.Duration { return e.wait }

func TestRetryAfterSurvivesWrapping(t *testing.T) {
	plain := errors.New("plain")
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"nil", nil, 0},
		{"nil error", errdefs.RetryAfter(nil, time.Second), 0},
		{"plain", plain, 0},
		{"given", errdefs.RetryAfter(plain, time.Second), time.Second},
		{"wrapped", fmt.Errorf("create: %w", errdefs.RetryAfter(plain, time.Second)), time.Second},
		{"provider's own", fmt.Errorf("create: %w", tooMany{time.Minute}), time.Minute},
		{"says nothing", tooMany{}, 0},
		{"joined: the longest", errors.Join(tooMany{time.Second}, plain, tooMany{time.Minute}, tooMany{time.Second}), time.Minute},
		{"outermost", errdefs.RetryAfter(tooMany{time.Minute}, time.Second), time.Second},
	} {
		after, says := errdefs.RetryAfterOf(tt.err)
		if after != tt.want || says != (tt.want > 0) {
			t.Errorf("%s: got %v, %v; want %v", tt.name, after, says, tt.want)
		}
	}
	if err := errdefs.RetryAfter(errdefs.NotFound("gone"), time.Second); !errdefs.IsNotFound(err) || err.Error() != "gone" {
		t.Errorf("%v lost its kind or its message", err)
	}
}
