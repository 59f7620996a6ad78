// SPDX-License-Identifier: Apache-2.0

// Package websession opens the sessions in containers that services offer by websocket.
//
// The guarantee: the address of a session gives access to the container, so no error contains it, and it is not sent without TLS unless the caller
// allows this.
//
// Note: a session sends keep-alives until its context ends, because services close idle sessions.
package websession

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// openTime bounds the opening of a session.
	openTime = 30 * time.Second
	// Beat is the interval at which a session reports that it is alive.
	Beat = 10 * time.Second
	// maxMessage is the maximum size of a message, in bytes.
	maxMessage = 16 << 20
)

// ErrAddress is the error of a missing address, or of an address without TLS.
var ErrAddress = errors.New("the service gives no address of a session that begins with wss://")

// Options configures a session.
type Options struct {
	// TLS has the settings for requests to the service. Nil means the settings of this machine.
	TLS *tls.Config
	// Protocols are the offered protocols.
	Protocols []string
	// Plain allows an address without TLS on any host. Without it, only addresses of this machine may lack TLS.
	Plain bool
}

// Session is a session in a container. One goroutine reads, and any goroutine writes.
type Session struct {
	*websocket.Conn
	mu sync.Mutex // guards writes
}

// Open opens a session, which lives until ctx ends.
func Open(ctx context.Context, address string, o Options) (*Session, error) {
	conn, err := Dial(ctx, address, o)
	if err != nil {
		return nil, err
	}
	return Keep(ctx, conn), nil
}

// Dial opens a session that the caller keeps alive and closes.
func Dial(ctx context.Context, address string, o Options) (*websocket.Conn, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && !(u.Scheme == "ws" && (o.Plain || IsLoopback(u.Hostname()))) {
		return nil, ErrAddress
	}
	secure := o.TLS.Clone()
	if secure != nil {
		secure.NextProtos = nil // a websocket is HTTP/1.1
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: openTime, TLSClientConfig: secure, Subprotocols: o.Protocols}
	conn, refusal, err := dialer.DialContext(ctx, u.String(), nil)
	if refusal != nil && refusal.Body != nil {
		refusal.Body.Close()
	}
	var quotes *url.Error
	if errors.As(err, &quotes) {
		err = quotes.Err
	}
	if err != nil {
		return nil, fmt.Errorf("open the session at %s: %w", u.Host, err)
	}
	return conn, nil
}

// Keep returns a session on a connection. It keeps the session alive until ctx ends, and then closes it.
func Keep(ctx context.Context, conn *websocket.Conn) *Session {
	conn.SetReadLimit(maxMessage)
	s := &Session{Conn: conn}
	context.AfterFunc(ctx, func() { conn.Close() })
	go s.keepAlive(ctx)
	return s
}

// Send sends a binary message.
func (s *Session) Send(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.WriteMessage(websocket.BinaryMessage, data)
}

// Write implements io.Writer with Send.
func (s *Session) Write(data []byte) (int, error) { return len(data), s.Send(data) }

// keepAlive sends keep-alives until ctx ends, because the service closes idle sessions.
func (s *Session) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(Beat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		err := s.WriteControl(websocket.PingMessage, nil, time.Now().Add(Beat))
		s.mu.Unlock()
		if err != nil {
			s.Close() // ends the reader
			return
		}
	}
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// SendJSON sends a message in JSON.
func (s *Session) SendJSON(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.WriteJSON(v)
}

// CopyInput sends an input until it ends, or write fails. A nil input is empty.
func CopyInput(in io.Reader, write func([]byte) error) {
	if in == nil {
		return
	}
	buffer := make([]byte, 8<<10)
	for {
		n, err := in.Read(buffer)
		if n > 0 && write(buffer[:n]) != nil || err != nil {
			return
		}
	}
}
