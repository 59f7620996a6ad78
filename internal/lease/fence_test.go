// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSteadyWorkAsksForARenewal: work requests a renewal while the fence still allows it, but not so early that busy nodes renew twice as often as
// others.
func TestSteadyWorkAsksForARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence()
		f.Renewed(time.Now(), true)
		f.Begin(f.Term())
		for _, tt := range []struct {
			age           time.Duration
			wanted, fails bool
		}{{0, false, false}, {renewAge, false, false}, {renewAge + time.Millisecond, true, false}, {MaxAge - time.Millisecond, true, false}, {MaxAge, true, true}} {
			time.Sleep(tt.age - time.Since(f.sent))
			if _, err := f.Enter(t.Context()); errors.Is(err, ErrFenced) != tt.fails {
				t.Errorf("after %v: %v", tt.age, err)
			}
			wanted := false
			select {
			case <-f.Wanted:
				wanted = true
			default:
			}
			if wanted != tt.wanted {
				t.Errorf("after %v a renewal is wanted: %v", tt.age, wanted)
			}
		}
	})
}

// TestARenewalIsWantedOnce: work during a renewal does not request another renewal. Otherwise busy nodes would renew again a second later.
func TestARenewalIsWantedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFence()
		f.Renewed(time.Now(), true)
		f.Begin(f.Term())
		time.Sleep(MaxAge - time.Second)
		_, _ = f.Enter(t.Context())
		<-f.Wanted
		sent := time.Now()
		time.Sleep(100 * time.Millisecond)
		_, _ = f.Enter(t.Context())
		f.Renewed(sent, false)
		select {
		case <-f.Wanted:
			t.Error("another renewal is wanted, as the last was on its way")
		default:
		}
	})
}

func TestNoFenceHasNoChanges(t *testing.T) {
	var f *Fence
	if f.Changes() != nil {
		t.Error("there are changes where there is no fence")
	}
}
