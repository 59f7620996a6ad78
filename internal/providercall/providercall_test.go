// SPDX-License-Identifier: Apache-2.0

package providercall

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPanicBecomesAnError(t *testing.T) {
	c := &Caller{}
	err := c.Do(t.Context(), "CreatePod", func(context.Context) error { panic("boom") })
	var p *Panic
	if !errors.As(err, &p) || p.Method != "CreatePod" || p.Value != "boom" {
		t.Errorf("got %v, want a Panic in CreatePod with value boom", err)
	}
}

func TestDeadlineCancelsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Caller{Deadline: time.Minute}
		begin := time.Now()
		err := c.Do(t.Context(), "CreatePod", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %v, want deadline exceeded after 1m", err, time.Since(begin))
		}
	})
}

func TestCallIsWaitedForBeyondItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Caller{Deadline: time.Minute}
		begin := time.Now()
		err := c.Do(t.Context(), "CreatePod", func(context.Context) error { time.Sleep(time.Hour); return nil })
		if err != nil || time.Since(begin) != time.Hour {
			t.Errorf("got %v after %v, want nil after 1h", err, time.Since(begin))
		}
	})
}

func TestSlowCallIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		c := &Caller{Patience: &Patience{}, Slow: func(context.Context) { told.Add(1) }}
		_ = c.Do(t.Context(), "GetPod", func(context.Context) error { return nil })
		if told.Load() != 0 {
			t.Error("a quick call was told to be slow")
		}
		_ = c.Do(t.Context(), "GetPod", func(context.Context) error { time.Sleep(time.Minute); return nil })
		if told.Load() != 1 {
			t.Errorf("a slow call was told %d times, want once", told.Load())
		}
	})
}
