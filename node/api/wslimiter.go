// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// messageForm is the layout of the messages of a WebSocket.
type messageForm int

const (
	// byteMessages are pieces of one stream of bytes, as in a tunnel.
	byteMessages messageForm = iota
	// channelMessages begin with the number of a channel.
	channelMessages
	// textMessages begin with the digit of a channel, followed by base64.
	textMessages
)

// closeSignal is the channel of the close signal: a message of two bytes whose second byte is the channel to close.
const closeSignal = 255

// messageLimiter checks the messages of a WebSocket client for the library, which buffers a whole message before it passes on any part.
//
// The messageLimiter splits a message into messages of the size in which it arrives, at most the size of the reader's buffer, all for the
// same channel. It also splits a message that consists of many frames. Terminal sizes are passed on one by one, because the library's
// reader for them keeps unparsable data. A violation of the protocol, or a frame of more than maxFrame, ends the connection.
type messageLimiter struct {
	form  messageForm
	sizes int // the channel of terminal sizes; below 0: none

	scan wsScanner
	out  bytes.Buffer // the bytes for the library

	// state of the current message
	begun   bool   // its channel is known
	channel byte   // as sent by the client
	rest    []byte // content that waits for more bytes: an incomplete base64 group, or a signal
	control []byte // the current control frame, so far
	passed  bool   // a part of the message was passed on
	size    sizeScanner

	answer wsAnswer
}

func newMessageLimiter(form messageForm, sizes bool) *messageLimiter {
	l := &messageLimiter{form: form, sizes: -1}
	if sizes {
		l.sizes = remotecommand.StreamResize
	}
	return l
}

func (l *messageLimiter) pass(piece []byte) ([]byte, error) {
	l.out.Reset()
	err := l.scan.scan(piece, l.content)
	return l.out.Bytes(), err
}

// content handles the next piece of a frame. last means that the piece is the last of the frame.
func (l *messageLimiter) content(h wsHeader, piece []byte, last bool) error {
	if h.isControl() {
		l.control = append(l.control, piece...)
		if last {
			l.write(h.opcode, l.control)
			l.control = l.control[:0]
		}
		return nil
	}
	if l.form != byteMessages && !l.begun && len(piece) > 0 {
		l.begun, l.channel, l.passed, piece = true, piece[0], false, piece[1:]
	}
	over := last && h.final
	if l.form == byteMessages || l.begun {
		if err := l.message(h, piece, over); err != nil {
			return err
		}
	}
	if over {
		l.begun = false
	}
	return nil
}

// message handles the next piece of a message, after the channel byte.
func (l *messageLimiter) message(h wsHeader, piece []byte, over bool) error {
	switch {
	case l.form == byteMessages:
		if len(piece) > 0 {
			l.write(h.kind, piece)
		}
	case l.form == textMessages:
		return l.text(h, piece, over)
	case l.channel == closeSignal:
		if l.rest = append(l.rest, piece...); len(l.rest) > 1 {
			return fmt.Errorf("%w: a signal of %d bytes", errOddFrame, 1+len(l.rest))
		}
		if over {
			l.write(h.kind, []byte{l.channel}, l.rest)
			l.rest = l.rest[:0]
		}
	case int(l.channel) == l.sizes:
		return l.size.scan(piece, func(size []byte) { l.write(h.kind, []byte{l.channel}, size) })
	case len(piece) > 0 || over && !l.passed:
		l.write(h.kind, []byte{l.channel}, piece)
		l.passed = true
	}
	return nil
}

// text is message for a base64 message. It cuts between groups of four characters.
func (l *messageLimiter) text(h wsHeader, piece []byte, over bool) error {
	for _, c := range piece {
		if c != '\r' && c != '\n' { // the decoder skips line breaks
			l.rest = append(l.rest, c)
		}
	}
	whole := len(l.rest) &^ 3
	if over {
		whole = len(l.rest)
	}
	defer func() { l.rest = append(l.rest[:0], l.rest[whole:]...) }()
	if int(l.channel) == '0'+l.sizes && l.sizes >= 0 {
		plain := make([]byte, base64.StdEncoding.DecodedLen(whole))
		n, err := base64.StdEncoding.Decode(plain, l.rest[:whole])
		if err != nil {
			return fmt.Errorf("%w: %w", errOddFrame, err)
		}
		return l.size.scan(plain[:n], func(size []byte) {
			l.write(h.kind, []byte{l.channel}, base64.StdEncoding.AppendEncode(nil, size))
		})
	}
	if whole > 0 || over && !l.passed {
		l.write(h.kind, []byte{l.channel}, l.rest[:whole])
		l.passed = true
	}
	return nil
}

// write adds a frame for the library. The frame is masked with zeroes, because the protocol requires client frames to be masked.
func (l *messageLimiter) write(opcode byte, parts ...[]byte) {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	l.out.WriteByte(finalBit | opcode)
	switch {
	case n <= maxControlPayload:
		l.out.WriteByte(maskBit | byte(n))
	default: // less than 64 KiB: the reader's buffer is smaller
		l.out.Write(binary.BigEndian.AppendUint16([]byte{maskBit | 126}, uint16(n)))
	}
	l.out.Write(make([]byte, 4))
	for _, part := range parts {
		l.out.Write(part)
	}
}

func (l *messageLimiter) sent(piece []byte) { l.answer.scan(piece) }

// sizeScanner finds terminal sizes in a client's JSON, which arrives in arbitrary pieces.
type sizeScanner struct{ rest []byte }

// maxSize bounds the JSON of a terminal's size, which has some 30 bytes.
const maxSize = 256

func (s *sizeScanner) scan(piece []byte, found func(size []byte)) error {
	for _, c := range piece {
		if s.rest = append(s.rest, c); c == '}' && json.Valid(s.rest) {
			found(s.rest)
			s.rest = s.rest[:0]
		}
		if len(s.rest) > maxSize {
			return fmt.Errorf("%w: the size of a terminal has more than %d bytes", errOddFrame, maxSize)
		}
	}
	return nil
}
