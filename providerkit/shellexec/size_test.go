// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// screen is a caller with a terminal, or with none.
type screen struct {
	api.AttachIO
	tty   bool
	sizes chan api.TermSize
}

func (s screen) TTY() bool                   { return s.tty }
func (s screen) Resize() <-chan api.TermSize { return s.sizes }

// TestFirstSizeOfATerminal: FirstSize reads later sizes, too, so the caller never blocks. It does not wait for
// ever for a caller that sends no size.
func TestFirstSizeOfATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := screen{tty: true, sizes: make(chan api.TermSize)}
		go func() {
			for i := range uint16(3) {
				s.sizes <- api.TermSize{Width: 100 + i, Height: 30}
			}
			cancel()
		}()
		if got := FirstSize(ctx, s); got != (api.TermSize{Width: 100, Height: 30}) {
			t.Errorf("got %+v", got)
		}
		<-ctx.Done() // all were read
		begun := time.Now()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		for _, none := range []screen{{tty: true, sizes: make(chan api.TermSize)}, {sizes: make(chan api.TermSize)}, {tty: true}} {
			if got := FirstSize(ctx, none); got != (api.TermSize{}) {
				t.Errorf("got %+v of a caller without a size", got)
			}
		}
		if waited := time.Since(begun); waited != sizePatience {
			t.Errorf("waited for %s", waited)
		}
	})
}

// TestEachSizeIsPassedOn checks sizes until the caller has no further ones, and callers without a terminal or with an empty one.
func TestEachSizeIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := screen{tty: true, sizes: make(chan api.TermSize, 3)}
		s.sizes <- api.TermSize{Width: 80, Height: 24}
		s.sizes <- api.TermSize{}
		s.sizes <- api.TermSize{Width: 100, Height: 30}
		close(s.sizes)
		var got []api.TermSize
		EachSize(t.Context(), s, func(size api.TermSize) { got = append(got, size) })
		if len(got) != 2 || got[1].Width != 100 {
			t.Errorf("got %v", got)
		}
		EachSize(t.Context(), screen{sizes: make(chan api.TermSize)}, nil)
		EachSize(t.Context(), screen{tty: true}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		EachSize(ctx, screen{tty: true, sizes: make(chan api.TermSize)}, nil)
	})
}
