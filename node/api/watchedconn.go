// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"k8s.io/streaming/pkg/httpstream"
)

const (
	// readAheadLimit bounds what is read from a client before the provider reads it.
	readAheadLimit = 256 << 10
	// readSize is how much of it is read at once.
	readSize = 16 << 10
)

// watchedConn is a connection that is always being read, so that a client
// that goes away is noticed even while nobody reads what it sent. The
// streaming libraries stop reading the connection as soon as one stream is
// not consumed, and net/http no longer looks after a connection that was taken over.
//
// The promise has one limit: a client that goes away behind more than readAheadLimit
// bytes that nobody reads is noticed at the next write, or at the idle timeout.
type watchedConn struct {
	net.Conn
	gone   func(why error) // called when the connection can no longer be read, or written
	done   chan struct{}
	frames *frameGuard // nil: not SPDY
	record *streamRecord

	mu      sync.Mutex
	changed sync.Cond // L is mu
	ahead   bytes.Buffer
	ended   bool // no more bytes will come
	closed  bool
}

func watchConn(conn net.Conn, from io.Reader, gone func(error), frames *frameGuard, record *streamRecord) *watchedConn {
	c := &watchedConn{Conn: conn, gone: gone, done: make(chan struct{}), frames: frames, record: record}
	c.changed.L = &c.mu
	from = countedReader{from, record}
	if frames != nil {
		from = &guardedReader{from: from, guard: frames}
	}
	go c.readAhead(from)
	return c
}

// readAhead ends when the connection is closed by either side.
func (c *watchedConn) readAhead(from io.Reader) {
	defer close(c.done)
	var err error
	defer func() { c.gone(err) }()
	chunk := make([]byte, readSize)
	for {
		var n int
		n, err = from.Read(chunk)
		c.mu.Lock()
		c.ahead.Write(chunk[:n])
		c.ended = err != nil
		c.changed.Broadcast()
		for c.ahead.Len() >= readAheadLimit && !c.closed {
			c.changed.Wait()
		}
		stop := c.ended || c.closed
		c.mu.Unlock()
		if stop {
			return
		}
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

// Close may be called again, which is no error: the library keeps a goroutine
// for a second to hand over an error of closing.
func (c *watchedConn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	if closed {
		return nil
	}
	return c.Conn.Close()
}

// upgradeWriter hands out a watchedConn when the streaming library takes over
// the connection. It has no Unwrap method on purpose: the library would
// look behind it and take the connection itself.
type upgradeWriter struct {
	http.ResponseWriter
	gone   func(why error)
	record *streamRecord
	// frames returns the guard for a protocol; nil: it is not SPDY.
	frames func(protocol string) *frameGuard
	// protocol, unless it is empty, is what the client is told instead of what the library has chosen.
	protocol string

	mu     sync.Mutex
	closed bool
	conn   *watchedConn
	lost   error // why the connection could not be taken over
}

// WriteHeader implements http.ResponseWriter.
func (w *upgradeWriter) WriteHeader(code int) {
	if code == http.StatusSwitchingProtocols && w.protocol != "" {
		w.Header().Set(httpstream.HeaderProtocolVersion, w.protocol)
	}
	w.ResponseWriter.WriteHeader(code)
}

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		conn, rw, err = w.watch(conn, rw)
	}
	if err != nil {
		w.lost = fmt.Errorf("take over the connection: %w", err)
	}
	return conn, rw, w.lost
}

// watch returns the connection as the library gets it. mu is held.
func (w *upgradeWriter) watch(conn net.Conn, rw *bufio.ReadWriter) (net.Conn, *bufio.ReadWriter, error) {
	if w.closed {
		conn.Close()
		return nil, nil, net.ErrClosed
	}
	var frames *frameGuard
	if w.frames != nil {
		frames = w.frames(w.Header().Get(httpstream.HeaderProtocolVersion)) // what both sides agreed on
		frames.record = w.record
	}
	ahead, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	// Not rw.Reader itself: at the end of the connection it would end the request's context before
	// we can say why.
	from := io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), conn)
	w.conn = watchConn(conn, from, w.gone, frames, w.record)
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// taken reports whether the connection was taken over.
func (w *upgradeWriter) taken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn != nil
}

// whyLost returns why the connection could not be taken over, if that was tried.
func (w *upgradeWriter) whyLost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// close closes the connection if it was taken over.
func (w *upgradeWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.conn != nil {
		w.conn.Close()
	}
}

// wait returns when the connection, if it was taken over, is no longer read. close comes first.
func (w *upgradeWriter) wait() {
	w.mu.Lock()
	conn := w.conn
	w.mu.Unlock()
	if conn != nil {
		<-conn.done
	}
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
