// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const (
	// dialTimeout bounds the opening of a session.
	dialTimeout = 30 * time.Second
	// beatEvery is the interval at which a session reports that it is alive.
	beatEvery = 10 * time.Second
	// maxMessage is the maximum size of a message of a session, in bytes.
	maxMessage = 16 << 20
)

// errClosed means that the other side has ended a session.
var errClosed = errors.New("the session has ended")

// session is a connection to the console proxy of Zun: binary messages, without channels.
type session struct {
	conn *websocket.Conn
	mu   sync.Mutex // of writes
}

// open opens a session. The address is a key to the container, so no error contains it.
func (d *driver) open(ctx context.Context, address string) (*session, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New("the address of the session that Zun gives does not begin with wss://: look at [websocket_proxy] base_url of Zun")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "ws" && !(ip != nil && ip.IsLoopback()) && !d.config.AllowPlainConsole {
		return nil, fmt.Errorf("the console proxy at %s has no TLS, and the address of a session lets in whoever reads it: let base_url of Zun begin with wss://, or set allowPlainConsole", u.Host)
	}
	var secure *tls.Config
	if t, ok := d.client.http.Transport.(*http.Transport); ok && t.TLSClientConfig != nil {
		secure = t.TLSClientConfig.Clone()
		secure.NextProtos = nil // a websocket is HTTP/1.1
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout, TLSClientConfig: secure, Subprotocols: []string{"binary"}}
	conn, refusal, err := dialer.DialContext(ctx, u.String(), nil)
	if refusal != nil && refusal.Body != nil {
		refusal.Body.Close()
	}
	if at := (*url.Error)(nil); errors.As(err, &at) { // which quotes the address
		err = at.Err
	}
	if err != nil {
		return nil, fmt.Errorf("open the session at %s: %w", u.Host, err)
	}
	conn.SetReadLimit(maxMessage)
	s := &session{conn: conn}
	context.AfterFunc(ctx, func() { conn.Close() })
	go s.beat(ctx)
	return s, nil
}

// write sends input.
func (s *session) write(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.WriteMessage(websocket.BinaryMessage, data)
}

// beat keeps a session from being closed for silence, until ctx ends.
func (s *session) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(beatEvery))
		s.mu.Unlock()
		if err != nil {
			s.conn.Close()
			return
		}
	}
}

// receive passes the output to take until take reports the end. errClosed means that the other side has ended
// the session.
func (s *session) receive(ctx context.Context, take func([]byte) (over bool, err error)) error {
	for {
		_, data, err := s.conn.ReadMessage()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return errClosed
		}
		if over, err := take(data); over {
			return err
		}
	}
}

// resize passes on the sizes of a terminal until the session ends.
func (s *session) resize(ctx context.Context, attach api.AttachIO, set func(context.Context, url.Values) error) {
	sizes := attach.Resize()
	for attach.TTY() && sizes != nil {
		select {
		case size, more := <-sizes:
			if !more {
				return
			}
			if size.Width > 0 && size.Height > 0 {
				_ = set(ctx, url.Values{"h": {strconv.Itoa(int(size.Height))}, "w": {strconv.Itoa(int(size.Width))}}) // the next one may do
			}
		case <-ctx.Done():
			return
		}
	}
}
