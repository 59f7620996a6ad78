// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"context"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// sizePatience is the time that FirstSize waits for the first size of a terminal.
const sizePatience = time.Second

// FirstSize returns the first size of the caller's terminal, for services whose sessions keep one size. It is zero without a terminal, or
// if no size arrives in time. FirstSize discards later sizes until the session ends.
func FirstSize(ctx context.Context, attach api.AttachIO) (size api.TermSize) {
	sizes := attach.Resize()
	if !attach.TTY() || sizes == nil {
		return size
	}
	patience := time.NewTimer(sizePatience)
	defer patience.Stop()
	select {
	case size = <-sizes:
	case <-patience.C:
	case <-ctx.Done():
	}
	go func() {
		for {
			select {
			case _, more := <-sizes:
				if !more {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return size
}

// EachSize passes the sizes of the caller's terminal to set until ctx ends or the caller has no further sizes.
func EachSize(ctx context.Context, attach api.AttachIO, set func(api.TermSize)) {
	sizes := attach.Resize()
	for attach.TTY() && sizes != nil {
		select {
		case size, more := <-sizes:
			if !more {
				return
			}
			if size.Width > 0 && size.Height > 0 {
				set(size)
			}
		case <-ctx.Done():
			return
		}
	}
}
