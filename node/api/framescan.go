// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/binary"

	"github.com/moby/spdystream/spdy"
)

const (
	frameHeaderSize = 8
	controlBit      = 1 << 31 // in the first word; not set in data frames
	// maxControlFrame bounds a frame without data. A client's control frames have some 100 bytes.
	maxControlFrame = 8 << 10
)

// frameScanner finds the frames in a stream of bytes. It hands data on in the pieces in which they arrive, and
// everything else as whole frames.
type frameScanner struct {
	header [frameHeaderSize]byte
	have   int // bytes of header

	left    int // bytes of the content not yet received
	flags   spdy.DataFlags
	stream  spdy.StreamId
	control []byte // the frame so far, nil between such frames
}

// frameSink receives the frames that a frameScanner finds. flags are set only for the last piece of a frame.
type frameSink struct {
	data    func(id spdy.StreamId, flags spdy.DataFlags, content []byte) error
	control func(whole []byte) error
}

func (s *frameScanner) scan(piece []byte, sink frameSink) error {
	for len(piece) > 0 {
		if s.have < frameHeaderSize {
			n := copy(s.header[s.have:], piece)
			s.have, piece = s.have+n, piece[n:]
			if s.have < frameHeaderSize {
				return nil
			}
			if err := s.begin(); err != nil {
				return err
			}
			if s.left > 0 {
				continue
			}
		}
		n := min(s.left, len(piece))
		s.left -= n
		if err := s.content(piece[:n], sink); err != nil {
			return err
		}
		piece = piece[n:]
	}
	return nil
}

// begin starts a frame after its header is complete.
func (s *frameScanner) begin() error {
	first, second := binary.BigEndian.Uint32(s.header[:4]), binary.BigEndian.Uint32(s.header[4:])
	s.left = int(second & 0xffffff)
	s.control = nil
	if first&controlBit == 0 {
		s.stream, s.flags = spdy.StreamId(first), spdy.DataFlags(second>>24)
		if s.left > maxFrame {
			return tooLarge(uint64(s.left))
		}
		return nil
	}
	if s.left > maxControlFrame {
		return errOddFrame
	}
	s.control = append(make([]byte, 0, frameHeaderSize+s.left), s.header[:]...)
	return nil
}

// content handles the next piece of a frame. The piece may be empty for an empty frame.
func (s *frameScanner) content(piece []byte, sink frameSink) error {
	if s.left == 0 {
		s.have = 0
	}
	if s.control != nil {
		s.control = append(s.control, piece...)
		if s.left > 0 {
			return nil
		}
		return sink.control(s.control)
	}
	var flags spdy.DataFlags
	if s.left == 0 {
		flags = s.flags
	}
	return sink.data(s.stream, flags, piece)
}
