// SPDX-License-Identifier: Apache-2.0

package providercall

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatienceFollowsWhatIsUsual(t *testing.T) {
	for _, tt := range []struct {
		name string
		took time.Duration
		err  error
		want time.Duration
	}{
		{"quick backend", time.Millisecond, nil, leastPatience},
		{"backend that takes a while", 200 * time.Millisecond, nil, 800 * time.Millisecond},
		{"slow backend", time.Minute, nil, mostPatience},
		{"calls that fail tell nothing", time.Minute, errors.New("no"), firstPatience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Caller{Patience: &Patience{}}
				for range 20 {
					_ = c.Do(t.Context(), "CreatePod", func(context.Context) error { time.Sleep(tt.took); return tt.err })
				}
				if got := c.Patience.With("CreatePod"); got != tt.want {
					t.Errorf("patience is %v, want %v", got, tt.want)
				}
				if got := c.Patience.With("GetPod"); got != firstPatience {
					t.Errorf("patience with another method is %v, want %v", got, firstPatience)
				}
			})
		})
	}
}
