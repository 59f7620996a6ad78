// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/moby/spdystream/spdy"
)

// client writes frames as a client library does.
type client struct {
	*spdy.Framer
	sent bytes.Buffer
}

func newClient(t testing.TB) *client {
	t.Helper()
	c := &client{}
	var err error
	if c.Framer, err = spdy.NewFramer(&c.sent, &c.sent); err != nil {
		t.Fatal(err)
	}
	return c
}

// frames returns the bytes that a client sends for these frames.
func (c *client) frames(t testing.TB, frames ...spdy.Frame) []byte {
	t.Helper()
	c.sent.Reset()
	for _, f := range frames {
		if err := c.WriteFrame(f); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Clone(c.sent.Bytes())
}

func opening(id spdy.StreamId) spdy.Frame {
	return &spdy.SynStreamFrame{StreamId: id, Headers: http.Header{"Streamtype": {"data"}, "Port": {"80"}, "Requestid": {fmt.Sprint(id)}}}
}

func ending(id spdy.StreamId) spdy.Frame {
	return &spdy.DataFrame{StreamId: id, Flags: spdy.DataFlagFin}
}

func TestSecurityE2StreamsOfAConnectionAreBounded(t *testing.T) {
	c, node := newClient(t), newClient(t)
	l := newForwardLimiter()
	pass := func(f spdy.Frame) error {
		_, err := l.pass(c.frames(t, f))
		return err
	}
	id := spdy.StreamId(1)
	for ; id < 2*maxForwardStreams; id += 2 {
		if err := pass(opening(id)); err != nil {
			t.Fatalf("stream %d: %v", id, err)
		}
	}
	// A stream counts until both sides have ended it, or one side has reset it.
	if err := pass(ending(1)); err != nil {
		t.Fatal(err)
	}
	if n := len(l.open); n != maxForwardStreams {
		t.Errorf("%d streams are open after a client has ended its side of one, want %d", n, maxForwardStreams)
	}
	reply := node.frames(t, &spdy.SynReplyFrame{StreamId: 1}, ending(1), &spdy.RstStreamFrame{StreamId: 3, Status: spdy.Cancel})
	for _, b := range reply {
		l.sent([]byte{b})
	}
	for range 2 {
		if err := pass(opening(id)); err != nil {
			t.Fatalf("after two streams have ended: %v", err)
		}
		id += 2
	}
	if err := pass(opening(id)); !errors.Is(err, errTooManyStreams) {
		t.Errorf("one stream too many: got %v", err)
	}
}

func TestSecurityE5OddFramesAreRefused(t *testing.T) {
	control := func(kind uint16, flags uint8, payload ...byte) []byte {
		frame := binary.BigEndian.AppendUint32(nil, 1<<31|3<<16|uint32(kind))
		frame = binary.BigEndian.AppendUint32(frame, uint32(flags)<<24|uint32(len(payload)))
		return append(frame, payload...)
	}
	raw := func(frame []byte) func(*client) []byte {
		return func(*client) []byte { return frame }
	}
	stream := func(id spdy.StreamId, headers http.Header) func(*client) []byte {
		return func(c *client) []byte { return c.frames(t, &spdy.SynStreamFrame{StreamId: id, Headers: headers}) }
	}
	for name, frame := range map[string]func(*client) []byte{
		"settings that announce 4 billion":  raw(control(4, 0, 0xff, 0xff, 0xff, 0xff)),
		"a ping with another frame in it":   raw(control(6, 0, 0, 0, 0, 1, 0x80, 3, 0, 1, 0, 0, 0, 0)),
		"a reset with more":                 raw(control(3, 0, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 0)),
		"no such kind":                      raw(control(77, 0, 0, 0, 0, 1)),
		"a control frame of 16 MiB":         raw([]byte{0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff}),
		"a stream without its headers":      raw(control(1, 0, 0, 0, 0, 7)),
		"headers that are not compressed":   raw(control(1, 0, make([]byte, 100)...)),
		"data for no stream":                raw([]byte{0, 0, 0, 0, 0, 0, 0, 1, 'x'}),
		"headers that inflate to 4 MiB":     stream(7, http.Header{"X": {string(make([]byte, 4<<20))}}),
		"a stream of the node":              stream(6, nil),
		"a number that was used":            stream(5, nil),
		"a number less than one before":     stream(3, nil),
		"more headers than a stream has":    stream(7, manyHeaders(maxStreamHeaders+1)),
		"a longer header than a stream has": stream(7, http.Header{"X": {string(make([]byte, maxStreamHeader+1))}}),
	} {
		t.Run(name, func(t *testing.T) {
			l, c := newForwardLimiter(), newClient(t)
			if _, err := l.pass(c.frames(t, opening(5))); err != nil {
				t.Fatal(err)
			}
			if _, err := l.pass(frame(c)); !errors.Is(err, errOddFrame) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

func manyHeaders(n int) http.Header {
	h := http.Header{}
	for i := range n {
		h.Set(fmt.Sprintf("x-%d", i), "y")
	}
	return h
}

// TestSecurityE5LargeDataFramesArePassedInPieces: data of any size arrive whole, in frames no larger than the
// pieces in which they came.
func TestSecurityE5LargeDataFramesArePassedInPieces(t *testing.T) {
	c := newClient(t)
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	all := append(c.frames(t, opening(1)), c.frames(t, &spdy.DataFrame{StreamId: 1, Flags: spdy.DataFlagFin, Data: content}, &spdy.PingFrame{Id: 1})...)
	parser, err := spdy.NewFramer(io.Discard, &limitedReader{from: bytes.NewReader(all), limiter: newForwardLimiter()})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	ends, pings := 0, 0
	for {
		frame, err := parser.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch f := frame.(type) {
		case *spdy.DataFrame:
			if ends > 0 || len(f.Data) > readSize {
				t.Errorf("a frame of %d bytes after %d ends", len(f.Data), ends)
			}
			if f.Flags&spdy.DataFlagFin != 0 {
				ends++
			}
			got = append(got, f.Data...)
		case *spdy.PingFrame:
			pings++
		}
	}
	if !bytes.Equal(got, content) || ends != 1 || pings != 1 {
		t.Errorf("got %d bytes, %d ends and %d pings, want %d bytes, one end and one ping", len(got), ends, pings, len(content))
	}
}

// FuzzSPDYFrames holds that the library understands every byte that the limiter passes on.
func FuzzSPDYFrames(f *testing.F) {
	c := newClient(f)
	f.Add(c.frames(f, opening(1), &spdy.DataFrame{StreamId: 1, Data: []byte("hello")}, ending(1), opening(3), &spdy.RstStreamFrame{StreamId: 3, Status: spdy.Cancel}), uint8(7))
	f.Add(c.frames(f, &spdy.PingFrame{Id: 1}, &spdy.SettingsFrame{FlagIdValues: []spdy.SettingsFlagIdValue{{Id: 1, Value: 2}}}, &spdy.GoAwayFrame{}), uint8(1))
	f.Add([]byte{0x80, 3, 0, 4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}, uint8(3))
	f.Add([]byte{0, 0, 0, 1, 1, 0xff, 0xff, 0xff, 'x'}, uint8(0))
	f.Fuzz(func(t *testing.T, sent []byte, cut uint8) {
		l := newForwardLimiter()
		var passed bytes.Buffer
		for rest := sent; len(rest) > 0; {
			n := min(int(cut)+1, len(rest))
			out, err := l.pass(rest[:n])
			passed.Write(out)
			if err != nil {
				break
			}
			rest = rest[n:]
		}
		if passed.Len() > len(sent)*(frameHeaderSize+1) {
			t.Errorf("%d bytes became %d", len(sent), passed.Len())
		}
		parser, err := spdy.NewFramer(io.Discard, &passed)
		if err != nil {
			t.Fatal(err)
		}
		for passed.Len() > 0 {
			frame, err := parser.ReadFrame()
			if err != nil {
				t.Fatalf("the library does not understand what was passed on: %v", err)
			}
			if data, ok := frame.(*spdy.DataFrame); ok && len(data.Data) > int(cut)+1 {
				t.Errorf("a frame of %d bytes although %d came at once", len(data.Data), cut+1)
			}
		}
	})
}
