// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/binary"
	"errors"
)

// The status codes of a close frame.
const (
	closeProtocolError = 1002
	closeTooBig        = 1009
)

// closeFrame returns the last frame of a WebSocket, with the reason.
func closeFrame(why error) []byte {
	code := uint16(closeProtocolError)
	if errors.Is(why, errLargeFrame) {
		code = closeTooBig
	}
	text := why.Error()
	text = text[:min(len(text), maxControlPayload-2)]
	frame := []byte{finalBit | opcodeClose, byte(2 + len(text))}
	return append(binary.BigEndian.AppendUint16(frame, code), text...)
}
