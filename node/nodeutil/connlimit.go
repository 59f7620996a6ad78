// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// defaultMaxConns is the maximum number of server connections if the limit of open files is unknown.
	defaultMaxConns = 4096
	// connLogPause is the time between two log lines about refused connections.
	connLogPause = time.Minute
)

var connsRefused = metrics.NewCounter("virtual_kubelet_server_connections_refused_total",
	"Connections to the node's server that were closed because there were too many.")

// connLimit prevents clients of the server from using all open files of the process, because heartbeats and the provider also need files.
// It closes new connections beyond the limit at once. If they waited instead, the server would not respond to any client until other
// clients close their connections.
//
// One address gets at most three quarters of the limit, so that one client never blocks all others. The share is not smaller because the
// API server is one address, and carries the streams of all users.
type connLimit struct {
	net.Listener
	logger    log.Logger
	max       int // of all addresses
	perClient int // of one address
	slowest   time.Duration

	mu      sync.Mutex
	open    int            // guarded by mu
	clients map[string]int // guarded by mu; open connections by address
	logged  time.Time      // guarded by mu
}

// limitConns limits the connections of l to half of the process's open files.
func limitConns(ctx context.Context, l net.Listener) *connLimit {
	return newConnLimit(ctx, l, maxOpenFiles()/2)
}

func newConnLimit(ctx context.Context, l net.Listener, limit int) *connLimit {
	if limit <= 0 {
		limit = defaultMaxConns
	}
	return &connLimit{
		Listener: l, logger: log.G(ctx), max: limit, perClient: max(1, limit-limit/4), slowest: slowestRead,
		clients: map[string]int{},
	}
}

// Accept returns the next connection within the limits.
func (l *connLimit) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := addressOf(conn)
		if l.admit(client) {
			return &limitedConn{Conn: &slowConn{Conn: conn, slowest: l.slowest}, closed: sync.OnceFunc(func() { l.leave(client) })}, nil
		}
		_ = conn.Close() // a failed close needs no action
	}
}

func (l *connLimit) admit(client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open < l.max && l.clients[client] < l.perClient {
		l.open++
		l.clients[client]++
		return true
	}
	connsRefused.Inc()
	if now := time.Now(); now.Sub(l.logged) >= connLogPause {
		l.logged = now
		l.logger.Warnf("Closing new connections to the node's server: %d are open, %d of them from %s; at most %d and %d may be",
			l.open, l.clients[client], client, l.max, l.perClient)
	}
	return false
}

func (l *connLimit) leave(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.clients[client]--; l.clients[client] == 0 {
		delete(l.clients, client)
	}
}

func addressOf(conn net.Conn) string {
	address := conn.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// limitedConn is counted until it is closed, even after a stream has taken it over.
type limitedConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
