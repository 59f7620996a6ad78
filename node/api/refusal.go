// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
)

// maxFrame bounds a frame of a client, over SPDY and WebSocket: most clients send 32 KiB at a time, but some send a whole file at once.
const maxFrame = 1 << 20

var (
	errTooManyStreams = errors.New("the client opened more streams than it may")
	errOddFrame       = errors.New("the client sent a frame that breaks the protocol")
	errLargeFrame     = fmt.Errorf("the client sent a frame of more than %d bytes", maxFrame)
)

func tooLarge(size uint64) error { return fmt.Errorf("%w: %d", errLargeFrame, size) }

// isRefusal reports whether the node ends a connection because of the client's data. Such a client is still connected, and receives the
// reason.
func isRefusal(why error) bool {
	return errors.Is(why, errOddFrame) || errors.Is(why, errLargeFrame) || errors.Is(why, errTooManyStreams)
}

// refusalOf returns the reason if the node ended the connection of ctx because of the client's data, else nil.
func refusalOf(ctx context.Context) error {
	if why := context.Cause(ctx); isRefusal(why) {
		return why
	}
	return nil
}
