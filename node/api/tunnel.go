// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/websocket"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const (
	// maxForwarded bounds the connections that one client may forward at the same time. Further connections are refused; existing
	// connections continue.
	maxForwarded = 500
	// maxForwardStreams is the greatest number of open streams in the connection of a client. A forwarded connection uses two streams. A
	// client beyond this limit does not wait for replies, so its connection is closed.
	maxForwardStreams = 4 * maxForwarded
)

func newForwardLimiter() *frameLimiter { return newFrameLimiter(-1, maxForwardStreams) }

// throughTunnel returns a handler that runs serve, which speaks SPDY, over a connection tunneled through a WebSocket (protocol
// SPDY/3.1+portforward.k8s.io).
func throughTunnel(serve func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, req *http.Request) {
		up, _ := w.(*upgradeWriter)
		server := websocket.Server{Handshake: chooseTunnel, Handler: func(ws *websocket.Conn) {
			ws.PayloadType = websocket.BinaryFrame
			inner := req.Clone(req.Context())
			inner.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
			inner.Header.Set(httpstream.HeaderProtocolVersion, portforward.ProtocolV1Name)
			serve(&tunnelWriter{conn: newTunnelConn(ws, up), header: http.Header{}}, inner)
		}}
		server.ServeHTTP(w, req)
	}
}

// chooseTunnel accepts only the tunnel protocol. It does not check the origin: a browser does not add the credentials of this request to
// requests from another site.
func chooseTunnel(config *websocket.Config, _ *http.Request) error {
	for _, offered := range config.Protocol {
		if strings.TrimSpace(offered) == portforward.WebsocketsSPDYTunnelingPortForwardV1 {
			config.Protocol = []string{offered}
			return nil
		}
	}
	return errors.New("only port-forward is tunnelled through WebSocket")
}

// tunnelConn is the SPDY connection within a WebSocket, with a frameLimiter of its own: the limiter of the outer
// connection sees messages, not frames.
type tunnelConn struct {
	*websocket.Conn
	reader limitedReader
	up     *upgradeWriter
}

func newTunnelConn(ws *websocket.Conn, up *upgradeWriter) *tunnelConn {
	frames := newForwardLimiter()
	frames.record = up.record
	return &tunnelConn{Conn: ws, reader: limitedReader{from: ws, limiter: frames}, up: up}
}

func (c *tunnelConn) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	switch {
	case isRefusal(err):
		c.up.end(func(outer *watchedConn) { outer.refuse(err) })
		_, err = io.Copy(io.Discard, c.Conn) // until the connection is closed: otherwise the streams would end before the client gets the reason
		if err == nil {
			err = io.EOF
		}
	case err != nil:
		c.up.gone(err)
	}
	return n, err
}

func (c *tunnelConn) Write(p []byte) (int, error) {
	c.reader.limiter.sent(p)
	return c.Conn.Write(p)
}

// tunnelWriter discards the answer to an upgrade, because the WebSocket has already been upgraded.
type tunnelWriter struct {
	conn   net.Conn
	header http.Header
}

func (w *tunnelWriter) Header() http.Header         { return w.header }
func (w *tunnelWriter) WriteHeader(int)             {}
func (w *tunnelWriter) Write(p []byte) (int, error) { return len(p), nil }

// Hijack implements http.Hijacker.
func (w *tunnelWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}
