// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// lingerLimit is the time that a closed connection waits for the client to close its side.
	lingerLimit = 2 * time.Second
	// closeFrameLimit bounds the time to send the frame that tells a client why the node ends the connection.
	closeFrameLimit = 100 * time.Millisecond
)

// frameChecker checks the frames of a client for a library that trusts the announced sizes.
type frameChecker interface {
	// pass returns the bytes of a client that the library may see. A piece may begin and end anywhere in a frame. pass may change piece,
	// and its result is valid until the next call. After an error the connection must end.
	pass(piece []byte) ([]byte, error)
	// sent inspects the bytes that the library sends, one call at a time.
	sent(piece []byte)
}

// watchedConn is a connection that is always being read, so that the node notices a client that goes away even
// while its data are unread. The streaming libraries stop reading the connection as soon as one stream is not
// consumed, and net/http does not watch a connection that was taken over.
//
// The detection has one limit: a client may go away while more than readAheadLimit bytes are unread. This is noticed
// at the next write, or at the idle timeout. While other connections hold all of sharedMemory, the limit is
// leastAhead bytes.
//
// A client that violates the protocol is still connected. gone is called with the reason, and its further data are dropped. The owner of
// gone closes the connection when the session has sent the reason to the client.
//
// TCP resets a connection that is closed while bytes of the client are unread, and the client then loses the
// output and the exit status that it has not read yet. So Close only ends the sending side, and drops further
// data of the client until the client closes its side.
type watchedConn struct {
	net.Conn
	gone   func(why error) // called when the connection can no longer be read, or written
	done   chan struct{}
	frames frameChecker
	record *streamRecord

	writing sync.Mutex // held while something is sent

	mu        sync.Mutex
	changed   sync.Cond // its lock is mu
	ahead     backlog
	ended     bool  // no more bytes will arrive
	inputOver bool  // no more bytes will arrive for the reader
	closed    bool  // no more data will be sent
	refused   error // the protocol violation of the client
	linger    *time.Timer
}

func watchConn(conn net.Conn, from io.Reader, gone func(error), frames frameChecker, record *streamRecord) *watchedConn {
	c := &watchedConn{Conn: conn, gone: gone, done: make(chan struct{}), frames: frames, record: record}
	c.changed.L = &c.mu
	go c.readAhead(countedReader{from, record})
	return c
}

// readAhead ends when the client has closed the connection, or when the connection was closed here and the
// client has had its time to react.
func (c *watchedConn) readAhead(from io.Reader) {
	defer close(c.done)
	chunk := make([]byte, readSize)
	for {
		n, err := from.Read(chunk)
		passed, refused := c.frames.pass(chunk[:n])
		if errors.Is(refused, io.EOF) { // the client announced the end
			refused, err = nil, io.EOF
		}
		if refused != nil {
			c.refuse(refused)
			_, err = io.Copy(io.Discard, from)
		} else {
			c.keep(passed)
			c.endInput()
		}
		if refused != nil || err != nil {
			c.end()
			c.gone(err)
			return
		}
	}
}

// keep stores bytes for the reader, and waits for room. It drops bytes after Close.
func (c *watchedConn) keep(piece []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(piece) > 0 && !c.closed {
		n := c.ahead.add(piece)
		piece = piece[n:]
		c.changed.Broadcast()
		if n == 0 {
			c.changed.Wait()
		}
	}
}

// endInput records the end of the input of exec.
func (c *watchedConn) endInput() {
	if frames, ok := c.frames.(*frameLimiter); !ok || frames.exec == nil || !frames.inputOver {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inputOver = true
	c.changed.Broadcast()
}

// refuse records why the connection ends. The library does not see it: it would treat the connection as closed.
func (c *watchedConn) refuse(why error) {
	c.mu.Lock()
	c.refused = why
	c.mu.Unlock()
	c.gone(why)
}

// end records that no more bytes will arrive.
func (c *watchedConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.changed.Broadcast()
	if c.linger != nil {
		c.linger.Stop()
		c.Conn.Close()
	}
}

// Read returns io.EOF for every way in which a connection can end: for the library, a vanished client is a client that sends nothing more.
func (c *watchedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.ahead.size == 0 && !c.ended && !c.inputOver && !c.closed {
		c.changed.Wait()
	}
	if c.ahead.size == 0 || c.closed {
		return 0, io.EOF
	}
	n := c.ahead.read(p)
	c.changed.Broadcast()
	return n, nil
}

func (c *watchedConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if messages, ok := c.frames.(*messageLimiter); ok && len(p) > 0 && p[0] == finalBit|opcodeClose && messages.answer.betweenFrames() && c.refusal() != nil {
		return len(p), nil // the library does not know the reason: see sayWhy
	}
	c.frames.sent(p)
	n, err := c.Conn.Write(p)
	c.record.out.Add(int64(n))
	if err != nil {
		c.gone(err)
	}
	return n, err
}

// Close closes the sending side, and the connection once the client has closed its side too. A second call returns nil: otherwise a
// goroutine of the library would wait a second to deliver the error.
func (c *watchedConn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.changed.Broadcast()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	linger := ok && !closed && !c.ended
	c.ahead.drop() // there are no more reads
	if linger {
		// This also unblocks CloseWrite, which waits for a write that the client does not read.
		c.linger = time.AfterFunc(lingerLimit, func() { c.Conn.Close() })
	}
	c.mu.Unlock()
	switch {
	case closed:
		return nil
	case linger:
		c.gone(net.ErrClosed)
		c.sayWhy()
		_ = half.CloseWrite() // CloseWrite fails if the client closed first
		return nil
	}
	return c.Conn.Close()
}

func (c *watchedConn) close() { _ = c.Close() }

// abort closes the connection at once.
func (c *watchedConn) abort() {
	c.sayWhy()
	c.mu.Lock()
	c.closed = true
	c.ahead.drop()
	c.changed.Broadcast()
	c.mu.Unlock()
	c.Conn.Close()
}

func (c *watchedConn) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// sayWhy tells the client of a WebSocket why the node ends the connection, unless the client does not read the
// earlier data.
func (c *watchedConn) sayWhy() {
	why := c.refusal()
	messages, ok := c.frames.(*messageLimiter)
	if why == nil || !ok || !c.writing.TryLock() {
		return
	}
	defer c.writing.Unlock()
	if messages.answer.betweenFrames() && c.Conn.SetWriteDeadline(time.Now().Add(closeFrameLimit)) == nil {
		_, _ = c.Conn.Write(closeFrame(why)) // the client may have disconnected
		messages.answer.upgraded = false     // no data follow a close frame
	}
}

// countedReader records the activity of its reads.
type countedReader struct {
	from   io.Reader
	record *streamRecord
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if n > 0 {
		r.record.in.Add(int64(n))
		r.record.active()
	}
	return n, err
}
