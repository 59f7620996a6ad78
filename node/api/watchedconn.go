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

// readAheadLimit bounds what is read from a client before the provider reads it.
const readAheadLimit = 256 << 10

// watchedConn is a connection that is always being read, so that a client
// that goes away is noticed even while nobody reads what it sent. The
// streaming libraries stop reading the connection as soon as one stream is
// not consumed, and net/http no longer looks after a connection that was taken over.
//
// The promise has one limit: a client that goes away behind more than readAheadLimit
// bytes that nobody reads is noticed at the next write, or at the idle timeout.
type watchedConn struct {
	net.Conn
	gone  func() // called when the connection can no longer be read
	done  chan struct{}
	limit *streamLimit // nil: as many streams as the client likes; owned by readAhead

	mu      sync.Mutex
	changed sync.Cond // L is mu
	ahead   bytes.Buffer
	ended   bool // no more bytes will come
	closed  bool
}

func watchConn(conn net.Conn, from io.Reader, gone func(), limit *streamLimit) *watchedConn {
	c := &watchedConn{Conn: conn, gone: gone, done: make(chan struct{}), limit: limit}
	c.changed.L = &c.mu
	go c.readAhead(from)
	return c
}

// readAhead ends when the connection is closed by either side.
func (c *watchedConn) readAhead(from io.Reader) {
	defer close(c.done)
	defer c.gone()
	chunk := make([]byte, 16<<10)
	for {
		n, err := from.Read(chunk)
		if c.limit != nil && c.limit.pass(chunk[:n]) != nil {
			n, err = 0, errTooManyStreams // the library must not see it
		}
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
	n, err := c.Conn.Write(p)
	if err != nil {
		c.gone()
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
	gone func()
	// limit returns that of a protocol; nil: none. Set before the connection is taken over.
	limit func(protocol string) *streamLimit

	mu     sync.Mutex
	closed bool
	conn   *watchedConn
}

// Hijack implements http.Hijacker.
func (w *upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		conn.Close()
		return nil, nil, net.ErrClosed
	}
	var limit *streamLimit
	if w.limit != nil {
		limit = w.limit(w.Header().Get(httpstream.HeaderProtocolVersion)) // what both sides agreed on
	}
	w.conn = watchConn(conn, rw.Reader, w.gone, limit)
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// taken reports whether the connection was taken over.
func (w *upgradeWriter) taken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conn != nil
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
