// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/moby/spdystream/spdy"
)

const (
	// queuedPiece bounds the data frames for the library, because the library queues up to 250 frames.
	queuedPiece = 4 << 10
	// maxStreamHeaders and maxStreamHeader bound the headers of a new stream: usually three names and values of some 20 bytes. The library
	// keeps the headers for the lifetime of the stream.
	maxStreamHeaders = 16
	maxStreamHeader  = 256
)

// frameLimiter is the frameChecker of a SPDY client. The library allocates the announced size of a frame, up to 16 MiB for data and 1 GiB
// for compressed headers, and queues dozens of frames.
//
// The frameLimiter passes data on in frames of the size in which they arrive, at most the size of the reader's buffer. It first reads every
// other frame with the library's own parser and tight limits, and passes the frame on only if the parser understands all of it. So both
// parsers agree on the start of the next frame. It also counts streams.
type frameLimiter struct {
	announced int // streams that the client may still open; below 0: any number
	most      int // the maximum of streams open at the same time; 0: any number
	record    *streamRecord
	exec      streamTaker // receives the streams in place of the library; nil: the library receives them
	// inputOver records that exec receives no more input; owned by pass.
	inputOver bool

	from, to frameScanner
	out      bytes.Buffer // the bytes for the library
	frame    bytes.Buffer // the input of parser
	parser   *spdy.Framer

	mu   sync.Mutex
	last spdy.StreamId            // guarded by mu
	open map[spdy.StreamId]sideOf // guarded by mu; the ended sides of each stream
}

// streamTaker serves the streams of a client in place of the library.
type streamTaker interface {
	opened(id spdy.StreamId, headers http.Header)
	// data returns the part of content that the reader of the connection should receive.
	data(id spdy.StreamId, content []byte) ([]byte, error)
	// isInput reports whether content of the stream is for this reader.
	isInput(id spdy.StreamId) bool
	pinged(id uint32)
}

// sideOf is the set of sides that have finished sending on a stream.
type sideOf uint8

const (
	clientSide sideOf = 1 << iota
	nodeSide
	bothSides = clientSide | nodeSide
)

// newFrameLimiter returns a frameLimiter for a client that may open the announced number of streams in all, and most streams at the same
// time. An announced below 0 and a most of 0 mean no limit.
func newFrameLimiter(announced, most int) *frameLimiter {
	l := &frameLimiter{announced: announced, most: most, record: &streamRecord{}, open: map[spdy.StreamId]sideOf{}}
	var err error
	l.parser, err = spdy.NewFramerWithOptions(io.Discard, &l.frame,
		spdy.WithMaxControlFramePayloadSize(maxControlFrame), spdy.WithMaxHeaderCount(maxStreamHeaders), spdy.WithMaxHeaderFieldSize(maxStreamHeader))
	if err != nil {
		panic(err) // the dictionary of the compressor is a constant
	}
	return l
}

// pass returns the bytes of a client that the library may see. A piece may begin and end anywhere in a frame. The result is valid until the
// next call. After an error the connection must end.
func (l *frameLimiter) pass(piece []byte) ([]byte, error) {
	l.out.Reset()
	err := l.from.scan(piece, frameSink{
		data: func(id spdy.StreamId, flags spdy.DataFlags, content []byte) error {
			if id == 0 {
				return errOddFrame
			}
			if l.exec != nil {
				input, err := l.exec.data(id, content)
				l.out.Write(input)
				l.endInput(id, flags&spdy.DataFlagFin != 0)
				return err
			}
			for {
				piece := content[:min(len(content), queuedPiece)]
				content = content[len(piece):]
				last := flags
				if len(content) > 0 {
					last = 0
				}
				var header [frameHeaderSize]byte
				binary.BigEndian.PutUint32(header[:4], uint32(id))
				binary.BigEndian.PutUint32(header[4:], uint32(last)<<24|uint32(len(piece)))
				l.out.Write(header[:])
				l.out.Write(piece)
				if len(content) == 0 {
					break
				}
			}
			l.ended(id, clientSide, flags&spdy.DataFlagFin != 0)
			return nil
		},
		control: l.passControl,
	})
	return l.out.Bytes(), err
}

// endInput records the end of the input of exec, if the ended stream is this input.
func (l *frameLimiter) endInput(id spdy.StreamId, really bool) {
	if really && l.exec != nil && l.exec.isInput(id) {
		l.inputOver = true
	}
}

// controlOfExec handles a control frame after the client has opened all streams. Headers in such a frame are ignored.
func (l *frameLimiter) controlOfExec(whole []byte) error {
	content := whole[frameHeaderSize:]
	switch kind := spdy.ControlFrameType(binary.BigEndian.Uint16(whole[2:])); {
	case kind == spdy.TypeSynStream:
		return errTooManyStreams
	case kind == spdy.TypePing && len(content) == 4:
		l.exec.pinged(binary.BigEndian.Uint32(content))
	case kind == spdy.TypeRstStream && len(content) == 8:
		l.endInput(spdy.StreamId(binary.BigEndian.Uint32(content)), true)
	case kind == spdy.TypeGoAway:
		l.record.saidGoodbye()
		return io.EOF // like the library: further data of the client are ignored
	}
	return nil
}

func (l *frameLimiter) passControl(whole []byte) error {
	if l.parser == nil {
		return l.controlOfExec(whole)
	}
	l.frame.Write(whole)
	frame, err := l.parser.ReadFrame()
	if err != nil {
		return fmt.Errorf("%w: %w", errOddFrame, err)
	}
	if l.frame.Len() > 0 {
		return errOddFrame
	}
	switch f := frame.(type) {
	case *spdy.SynStreamFrame:
		if err := l.opened(f.StreamId); err != nil {
			return err
		}
		l.ended(f.StreamId, clientSide, f.CFHeader.Flags&spdy.ControlFlagFin != 0)
		if l.exec != nil {
			l.exec.opened(f.StreamId, f.Headers)
			l.endInput(f.StreamId, f.CFHeader.Flags&spdy.ControlFlagFin != 0)
		}
	case *spdy.RstStreamFrame:
		l.ended(f.StreamId, bothSides, true)
		l.endInput(f.StreamId, true)
	case *spdy.PingFrame:
		if l.exec != nil {
			l.exec.pinged(f.Id)
		}
	case *spdy.GoAwayFrame:
		l.record.saidGoodbye()
		if l.exec != nil {
			return io.EOF // same as above, for a GOAWAY frame
		}
	}
	switch {
	case l.exec == nil:
		l.out.Write(whole)
	case l.announced == 0:
		l.parser = nil // the parser holds 40 KiB, and is no longer needed
	}
	return nil
}

// opened counts a stream. The library answers a reused stream ID with a reset, which would end the older stream here but not in the
// library.
func (l *frameLimiter) opened(id spdy.StreamId) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id%2 == 0 || id <= l.last {
		return fmt.Errorf("%w: stream %d after %d", errOddFrame, id, l.last)
	}
	l.last = id
	if l.announced == 0 || l.most > 0 && len(l.open) >= l.most {
		return errTooManyStreams
	}
	l.announced--
	l.open[id] = 0
	return nil
}

func (l *frameLimiter) ended(id spdy.StreamId, side sideOf, really bool) {
	if !really {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, ok := l.open[id]
	switch {
	case !ok:
	case before|side == bothSides:
		delete(l.open, id)
	default:
		l.open[id] = before | side
	}
}

// sent inspects the bytes that the library sends, one call at a time.
func (l *frameLimiter) sent(piece []byte) {
	_ = l.to.scan(piece, frameSink{
		data: func(id spdy.StreamId, flags spdy.DataFlags, content []byte) error {
			if len(content) > 0 {
				l.record.active()
			}
			l.ended(id, nodeSide, flags&spdy.DataFlagFin != 0)
			return nil
		},
		control: func(whole []byte) error {
			if kind := binary.BigEndian.Uint16(whole[2:]); kind == uint16(spdy.TypeRstStream) && len(whole) >= frameHeaderSize+4 {
				l.record.resetStream()
				l.ended(spdy.StreamId(binary.BigEndian.Uint32(whole[frameHeaderSize:])), bothSides, true)
			}
			return nil
		},
	})
}

// limitedReader reads the bytes that the frameLimiter passes.
type limitedReader struct {
	from    io.Reader
	limiter *frameLimiter
	chunk   []byte
	ahead   []byte // passed but not yet read; valid until the next pass
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.chunk == nil {
		r.chunk = make([]byte, readSize)
	}
	for len(r.ahead) == 0 {
		n, err := r.from.Read(r.chunk)
		var odd error
		if r.ahead, odd = r.limiter.pass(r.chunk[:n]); odd != nil {
			r.ahead = nil // the library must not see the refused bytes
			return 0, odd
		}
		if err != nil && len(r.ahead) == 0 {
			return 0, err // a reader that returned bytes together with an error returns the error again
		}
	}
	n := copy(p, r.ahead)
	r.ahead = r.ahead[n:]
	return n, nil
}
