// SPDX-License-Identifier: Apache-2.0

package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if !sleep.For(ctx, time.Second) || time.Since(begin) != time.Second {
			t.Errorf("a sleep of a second took %v", time.Since(begin))
		}
		if sleep.For(ctx, time.Hour) || time.Since(begin) != time.Minute {
			t.Errorf("a sleep was not cut short by its context: %v", time.Since(begin))
		}
		if !sleep.For(ctx, 0) {
			t.Error("no sleep has not passed")
		}
	})
}
