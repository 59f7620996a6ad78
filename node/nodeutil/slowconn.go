// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// slowestRead bounds a client's time to read one write of the server, 16 KiB at most. Without it, a client that never reads a log would
// hold a connection and its goroutines for ever.
const slowestRead = 10 * time.Minute

// slowConn ends a connection if the client does not read.
type slowConn struct {
	net.Conn
	slowest time.Duration

	mu       sync.Mutex
	deadline time.Time // guarded by mu; the deadline that the users of the connection set
	late     error     // guarded by mu; the error of the first write that the client did not read in time
}

// SetDeadline implements net.Conn.
func (c *slowConn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetWriteDeadline implements net.Conn. Write uses this deadline or the limit of the server, whichever is earlier.
func (c *slowConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

// Write implements net.Conn. After a write timed out, later writes fail at once: otherwise the close alert of TLS would wait again.
func (c *slowConn) Write(b []byte) (int, error) {
	if err := c.begin(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		c.late = err
		c.mu.Unlock()
	}
	return n, err
}

// begin sets the deadline for a write.
func (c *slowConn) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil {
		return c.late
	}
	limit := time.Now().Add(c.slowest)
	if !c.deadline.IsZero() && c.deadline.Before(limit) {
		limit = c.deadline
	}
	return c.Conn.SetWriteDeadline(limit)
}
