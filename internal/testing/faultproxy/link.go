// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// link is the proxy's port and the connections to it.
type link struct {
	hold     *held // keeps the port while there is no listener
	addr     net.Addr
	accepted chan net.Conn
	closed   chan struct{}
	loops    sync.WaitGroup // the loops that accept connections

	mu       sync.Mutex
	listener net.Listener   // guarded by mu; nil while connections are refused
	conns    map[*conn]bool // guarded by mu
	blocked  chan struct{}  // guarded by mu; not nil while packets are dropped, closed when packets pass again
	rate     int            // guarded by mu; bytes a second of a connection, 0 is no limit
	over     bool           // guarded by mu
}

func listenLink() (*link, error) {
	hold, err := holdPort()
	if err != nil {
		return nil, fmt.Errorf("hold a port for the proxy: %w", err)
	}
	l := &link{
		hold: hold, addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: hold.port},
		accepted: make(chan net.Conn), closed: make(chan struct{}), conns: map[*conn]bool{},
	}
	if err := l.Restore(); err != nil {
		hold.releasePort()
		return nil, err
	}
	return l, nil
}

// Refuse simulates a stopped API server: open connections are reset, new connections are refused.
func (l *link) Refuse() {
	l.mu.Lock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	l.mu.Unlock()
	l.loops.Wait()
	l.Reset()
}

// Restore ends Refuse.
func (l *link) Restore() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil || l.over {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", l.addr.String())
	if err != nil {
		return fmt.Errorf("listen for the proxy's clients: %w", err)
	}
	l.listener = listener
	l.loops.Go(func() { l.acceptFrom(listener) })
	return nil
}

func (l *link) acceptFrom(listener net.Listener) {
	for {
		raw, err := listener.Accept()
		if err != nil {
			return // Refuse or Close
		}
		c := &conn{TCPConn: raw.(*net.TCPConn), link: l, done: make(chan struct{})}
		l.mu.Lock()
		l.conns[c] = true
		l.mu.Unlock()
		select {
		case l.accepted <- c:
		case <-l.closed:
			_ = c.Close()
		}
	}
}

// listener is the server's view of a link. It does not fail while connections are refused.
type listener struct{ *link }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l listener) Addr() net.Addr { return l.addr }

// Close implements net.Listener.
func (l listener) Close() error { return l.stop() }

func (l *link) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil
	}
	l.over = true
	close(l.closed)
	if l.listener != nil {
		return l.listener.Close()
	}
	return nil
}

// shutLink ends the port, its connections and its goroutines.
func (l *link) shutLink() {
	_ = l.stop()
	l.Heal()
	l.Reset()
	l.loops.Wait()
	l.hold.releasePort()
}

// Reset resets all connections (RST) and returns how many there were.
func (l *link) Reset() int {
	l.mu.Lock()
	var open []*conn
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	return len(open)
}

// Blackhole drops all packets until Heal: connections stay open and nothing passes, and the handshake of a new
// connection is not answered.
func (l *link) Blackhole() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocked == nil {
		l.blocked = make(chan struct{})
	}
}

// Heal ends Blackhole. Data that was sent in the meantime arrives, like retransmitted packets.
func (l *link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocked != nil {
		close(l.blocked)
		l.blocked = nil
	}
}

// Throttle limits the data from each connection to its client, in bytes a second; 0 ends the limit.
func (l *link) Throttle(bytesPerSecond int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = bytesPerSecond
}

func (l *link) linkState() (blocked chan struct{}, rate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blocked, l.rate
}

// conn is one client's connection, below TLS.
type conn struct {
	*net.TCPConn
	link *link
	once sync.Once
	done chan struct{} // closed by Close
}

// awaitPass returns when packets pass.
func (c *conn) awaitPass() error {
	for {
		blocked, _ := c.link.linkState()
		if blocked == nil {
			return nil
		}
		select {
		case <-blocked:
		case <-c.done:
			return net.ErrClosed
		}
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 { // the data may have arrived while packets were dropped
		if err := c.awaitPass(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// throttledChunk is small, so that a slow connection trickles.
const throttledChunk = 1 << 10

// Write implements net.Conn.
func (c *conn) Write(b []byte) (written int, err error) {
	for written < len(b) {
		if err := c.awaitPass(); err != nil {
			return written, err
		}
		part := b[written:]
		if _, rate := c.link.linkState(); rate > 0 {
			part = part[:min(len(part), throttledChunk)]
			select {
			case <-time.After(time.Duration(len(part)) * time.Second / time.Duration(rate)):
			case <-c.done:
				return written, net.ErrClosed
			}
		}
		n, err := c.TCPConn.Write(part)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Close implements net.Conn.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		close(c.done)
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
		err = c.TCPConn.Close()
	})
	return err
}
