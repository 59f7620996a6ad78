// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	finalBit, maskBit  = 0x80, 0x80 // in the first and in the second byte of a frame
	extensionBits      = 0x70
	opcodeBits         = 0x0f
	opcodeContinuation = 0
	opcodeBinary       = 2
	opcodeClose        = 8
	opcodePong         = 10
	// maxControlPayload is the protocol's limit for the content of a control frame.
	maxControlPayload = 125
	maxWSHeader       = 14
)

// wsHeader is the header of a WebSocket frame.
type wsHeader struct {
	opcode byte
	// kind is the opcode of the message's first frame.
	kind  byte
	final bool
	mask  [4]byte
}

func (h wsHeader) isControl() bool { return h.opcode >= opcodeClose }

// wsScanner finds the frames in the bytes of a WebSocket client, and removes their mask.
type wsScanner struct {
	header [maxWSHeader]byte
	have   int // bytes of header

	frame   wsHeader
	left    uint64 // bytes of the content not yet received
	at      int    // position in the mask
	message byte   // opcode of the current message; 0: none
}

// scan passes content on in the pieces in which it arrives. It changes piece.
func (s *wsScanner) scan(piece []byte, content func(h wsHeader, piece []byte, last bool) error) error {
	for len(piece) > 0 {
		if want := wsHeaderSize(s.header[:s.have]); s.have < want {
			n := copy(s.header[s.have:want], piece)
			s.have, piece = s.have+n, piece[n:]
			if s.have < wsHeaderSize(s.header[:s.have]) {
				continue
			}
			if err := s.begin(); err != nil {
				return err
			}
			if s.left > 0 {
				continue
			}
		}
		n := int(min(s.left, uint64(len(piece))))
		for i := range piece[:n] {
			piece[i] ^= s.frame.mask[s.at]
			s.at = (s.at + 1) % len(s.frame.mask)
		}
		s.left -= uint64(n)
		last := s.left == 0
		if last {
			s.have = 0
		}
		if err := content(s.frame, piece[:n], last); err != nil {
			return err
		}
		piece = piece[n:]
	}
	return nil
}

// wsHeaderSize returns the length of a header from its known bytes.
func wsHeaderSize(known []byte) int {
	if len(known) < 2 {
		return 2
	}
	n := 2
	switch known[1] &^ maskBit {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if known[1]&maskBit != 0 {
		n += 4
	}
	return n
}

// wsLength returns the content length in a complete header.
func wsLength(header []byte) uint64 {
	switch n := header[1] &^ maskBit; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(header[2:]))
	case 127:
		return binary.BigEndian.Uint64(header[2:])
	default:
		return uint64(n)
	}
}

// begin starts a frame after its header is complete.
func (s *wsScanner) begin() error {
	header := s.header[:s.have]
	s.left, s.at = wsLength(header), 0
	f := wsHeader{opcode: header[0] & opcodeBits, final: header[0]&finalBit != 0}
	if header[1]&maskBit != 0 {
		copy(f.mask[:], header[s.have-len(f.mask):])
	}
	switch {
	case s.left > maxFrame:
		return tooLarge(s.left)
	case header[0]&extensionBits != 0:
		return fmt.Errorf("%w: no extension, as compression, was agreed on", errOddFrame)
	case header[1]&maskBit == 0:
		return fmt.Errorf("%w: it is not masked", errOddFrame)
	case f.isControl():
		if f.opcode > opcodePong || !f.final || s.left > maxControlPayload {
			return fmt.Errorf("%w: a control frame has one of three kinds, is whole, and has %d bytes at most", errOddFrame, maxControlPayload)
		}
	case f.opcode > opcodeBinary:
		return fmt.Errorf("%w: there is no kind %d", errOddFrame, f.opcode)
	case (f.opcode == opcodeContinuation) == (s.message == 0):
		return fmt.Errorf("%w: a message begins within another one, or goes on that has not begun", errOddFrame)
	default:
		if f.opcode != opcodeContinuation {
			s.message = f.opcode
		}
		f.kind = s.message
		if f.final {
			s.message = 0
		}
	}
	s.frame = f
	return nil
}

// wsAnswer scans the bytes that the library sends: the response to the request, then frames.
type wsAnswer struct {
	upgraded bool
	tail     [3]byte // the last bytes of the response so far
	header   [maxWSHeader]byte
	have     int
	left     uint64
}

var endOfAnswer = []byte("\r\n\r\n")

func (a *wsAnswer) scan(piece []byte) {
	if !a.upgraded {
		seen := append(a.tail[:], piece...)
		end := bytes.Index(seen, endOfAnswer)
		if end < 0 {
			copy(a.tail[:], seen[max(0, len(seen)-len(a.tail)):])
			return
		}
		a.upgraded, piece = true, seen[end+len(endOfAnswer):]
	}
	for len(piece) > 0 {
		if want := wsHeaderSize(a.header[:a.have]); a.have < want {
			n := copy(a.header[a.have:want], piece)
			a.have, piece = a.have+n, piece[n:]
			if a.have < wsHeaderSize(a.header[:a.have]) {
				continue
			}
			a.left = wsLength(a.header[:a.have])
		}
		n := min(a.left, uint64(len(piece)))
		a.left, piece = a.left-n, piece[n:]
		if a.left == 0 {
			a.have = 0
		}
	}
}

// betweenFrames reports whether a frame may begin.
func (a *wsAnswer) betweenFrames() bool { return a.upgraded && a.have == 0 }
