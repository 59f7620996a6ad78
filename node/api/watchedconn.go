// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// readAheadLimit bounds what is read from a client before the provider reads it.
	readAheadLimit = 256 << 10
	// lingerLimit is how long a connection that we have closed waits for the client to close it too.
	lingerLimit = 2 * time.Second
)

// watchedConn is a connection that is always being read, so that a client
// that goes away is noticed even while nobody reads what it sent. The
// streaming libraries stop reading the connection as soon as one stream is
// not consumed, and net/http no longer looks after a connection that was taken over.
//
// The promise has one limit: a client that goes away behind more than readAheadLimit
// bytes that nobody reads is noticed at the next write, or at the idle timeout.
//
// It is closed as TCP wants it: a connection that is closed while bytes of the client are unread is reset, and
// the client loses the output and the exit status that it has not read yet. So Close says only that
// nothing more comes, and what the client still sends is thrown away until it closes its side.
type watchedConn struct {
	net.Conn
	gone   func(why error) // called when the connection can no longer be read, or written
	done   chan struct{}
	frames *frameLimiter // nil: not SPDY
	record *streamRecord

	mu      sync.Mutex
	changed sync.Cond // L is mu
	ahead   bytes.Buffer
	ended   bool // no more bytes will come
	closed  bool // nothing more is sent
	linger  *time.Timer
}

func watchConn(conn net.Conn, from io.Reader, gone func(error), frames *frameLimiter, record *streamRecord) *watchedConn {
	c := &watchedConn{Conn: conn, gone: gone, done: make(chan struct{}), frames: frames, record: record}
	c.changed.L = &c.mu
	from = countedReader{from, record}
	if frames != nil {
		from = &limitedReader{from: from, limiter: frames}
	}
	go c.readAhead(from)
	return c
}

// readAhead ends when the client has closed the connection, or it was closed here and the client was
// given its time.
func (c *watchedConn) readAhead(from io.Reader) {
	defer close(c.done)
	chunk := make([]byte, readSize)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			c.end(chunk[:n])
			c.gone(err)
			return
		}
		c.keep(chunk[:n])
	}
}

// keep makes room for what was read; what comes after Close is for nobody.
func (c *watchedConn) keep(chunk []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.Write(chunk)
	c.changed.Broadcast()
	for c.ahead.Len() >= readAheadLimit && !c.closed {
		c.changed.Wait()
	}
	if c.closed {
		c.ahead.Reset()
	}
}

// end notes that nothing more comes.
func (c *watchedConn) end(last []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead.Write(last)
	c.ended = true
	c.changed.Broadcast()
	if c.linger != nil {
		c.linger.Stop()
		c.Conn.Close()
	}
}

// Read returns io.EOF for every way in which a connection ends: to the reader a client
// that vanished is one that has nothing more to say.
func (c *watchedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.ahead.Len() == 0 && !c.ended && !c.closed {
		c.changed.Wait()
	}
	if c.ahead.Len() == 0 || c.closed {
		return 0, io.EOF
	}
	n, err := c.ahead.Read(p)
	c.changed.Broadcast()
	return n, err
}

func (c *watchedConn) Write(p []byte) (int, error) {
	if c.frames != nil {
		c.frames.sent(p)
	}
	n, err := c.Conn.Write(p)
	c.record.out.Add(int64(n))
	if err != nil {
		c.gone(err)
	}
	return n, err
}

// Close ends what is sent, and the connection when the client has ended it too. It may be called
// again, which is no error: the library keeps a goroutine for a second to hand over an error of closing.
func (c *watchedConn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.changed.Broadcast()
	half, ok := c.Conn.(interface{ CloseWrite() error })
	linger := ok && !closed && !c.ended
	if linger {
		// It also unblocks CloseWrite, which waits for a write that the client does not read.
		c.linger = time.AfterFunc(lingerLimit, func() { c.Conn.Close() })
	}
	c.mu.Unlock()
	switch {
	case closed:
		return nil
	case linger:
		c.gone(net.ErrClosed)
		_ = half.CloseWrite() // it fails when the client was faster
		return nil
	}
	return c.Conn.Close()
}

func (c *watchedConn) close() { _ = c.Close() }

// abort closes the connection at once.
func (c *watchedConn) abort() {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	c.Conn.Close()
}

// countedReader notes what is read.
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
