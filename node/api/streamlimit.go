// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/binary"
	"errors"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// errTooManyStreams ends a connection.
var errTooManyStreams = errors.New("the client opened more streams than it announced")

// streamLimit counts the streams that a SPDY client opens. The library waits for those
// that the request announced; one more would hold its goroutines for ever, also
// after the connection has ended.
type streamLimit struct {
	left int // streams that may still be opened

	header [spdyHeaderSize]byte // of the frame that is being read
	have   int                  // bytes of header
	skip   int                  // bytes of the frame's content still to come
}

const (
	spdyHeaderSize = 8
	spdyControl    = 1 << 7 // in the first byte: no data
	spdySynStream  = 1      // the type of the frame that opens a stream
)

// pass follows the frames in what a client sends, however it is cut into pieces.
func (l *streamLimit) pass(piece []byte) error {
	for len(piece) > 0 {
		if l.skip > 0 {
			n := min(l.skip, len(piece))
			l.skip, piece = l.skip-n, piece[n:]
			continue
		}
		n := copy(l.header[l.have:], piece)
		l.have, piece = l.have+n, piece[n:]
		if l.have < spdyHeaderSize {
			return nil
		}
		size := binary.BigEndian.Uint32(l.header[4:]) & 0xffffff // the first byte has flags
		l.have, l.skip = 0, int(size)
		if l.header[0]&spdyControl != 0 && binary.BigEndian.Uint16(l.header[2:4]) == spdySynStream {
			if l.left--; l.left < 0 {
				return errTooManyStreams
			}
		}
	}
	return nil
}

// announced returns how many streams a session has over SPDY with a protocol: those of
// the request, one for errors, and one for the size of a terminal in newer protocols.
func announced(opts remotecommand.Options, protocol string) int {
	n := 1
	for _, stream := range []bool{opts.Stdin, opts.Stdout, opts.Stderr, opts.TTY && resizes(protocol)} {
		if stream {
			n++
		}
	}
	return n
}

func resizes(protocol string) bool {
	return protocol != remotecommand.StreamProtocolV1Name && protocol != remotecommand.StreamProtocolV2Name
}
