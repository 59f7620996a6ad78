// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestStartsTakeTurns: one more than may waits for the first that ends, but not for ever, and not when nobody wants it any more.
func TestStartsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(starts, 1)
		end := s.begin(t.Context())
		begun := make(chan func(), 1)
		go func() { begun <- s.begin(t.Context()) }()
		synctest.Wait()
		if len(begun) != 0 {
			t.Fatal("two starts at once")
		}
		end()
		synctest.Wait()
		if len(begun) != 1 {
			t.Fatal("the next one waits, and nobody else starts")
		}
		hangs, before := <-begun, time.Now()
		s.begin(t.Context())() // one that did not get a turn gives none back
		if waited := time.Since(before); waited != startTurn {
			t.Errorf("it waited %v for one that hangs, want %v", waited, startTurn)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s.begin(ctx)(); time.Since(before) != startTurn {
			t.Error("it waited for its turn without being wanted")
		}
		hangs()
		if s.begin(t.Context())(); time.Since(before) != startTurn || len(s) != 0 {
			t.Errorf("after all ended %d are under way", len(s))
		}
		starts(nil).begin(t.Context())()
	})
}
