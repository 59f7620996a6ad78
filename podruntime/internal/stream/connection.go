// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/moby/spdystream"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

const (
	// handshakeTimeout bounds the handshake of a session with the runtime.
	handshakeTimeout = 30 * time.Second
	// maxRefusal bounds the part of a refusal that is read.
	maxRefusal = 4 << 10
)

// connection is a SPDY connection with the streaming server of a runtime. The function that opened it closes it.
type connection struct {
	raw     net.Conn
	spdy    *spdystream.Connection
	streams []*spdystream.Stream
	served  chan struct{} // closed when reading from the connection has ended
	stop    func() bool
}

// openConnection connects to a URL of a runtime and negotiates one of the protocols. The connection closes when ctx ends.
func openConnection(ctx context.Context, address string, protocols ...string) (*connection, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the runtime gave an address that is no URL: %w", err)
	}
	raw, err := dialServer(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("connect with the streaming server of the runtime: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	c, err := upgradeConnection(ctx, raw, u, protocols)
	if err != nil {
		stop()
		_ = raw.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("open a session with the streaming server of the runtime: %w", err)
	}
	c.stop = stop
	return c, nil
}

func dialServer(ctx context.Context, u *url.URL) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	port := u.Port()
	switch u.Scheme {
	case "http":
		return (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), orDefault(port, "80")))
	case "https":
		return (&tls.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), orDefault(port, "443")))
	default:
		return nil, fmt.Errorf("the scheme %q is not served: http or https is expected", u.Scheme)
	}
}

func orDefault(port, other string) string {
	if port == "" {
		return other
	}
	return port
}

// upgradeConnection turns a connection into an SPDY connection.
func upgradeConnection(ctx context.Context, raw net.Conn, u *url.URL, protocols []string) (*connection, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	req.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	for _, p := range protocols {
		req.Header.Add(httpstream.HeaderProtocolVersion, p)
	}
	if err := raw.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, err
	}
	if err := req.Write(raw); err != nil {
		return nil, err
	}
	in := bufio.NewReader(raw)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		return nil, fmt.Errorf("the server answers %s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	if got := resp.Header.Get(httpstream.HeaderProtocolVersion); !slices.Contains(protocols, got) {
		return nil, fmt.Errorf("the server wants protocol %q; known are %q", got, protocols)
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return serveSPDY(raw, in)
}

// buffered is a connection with buffered data.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

func serveSPDY(raw net.Conn, in *bufio.Reader) (*connection, error) {
	conn, err := spdystream.NewConnection(buffered{raw, in}, false)
	if err != nil {
		return nil, err
	}
	c := &connection{raw: raw, spdy: conn, served: make(chan struct{})}
	go func() {
		defer close(c.served)
		conn.Serve(spdystream.NoOpStreamHandler)
	}()
	return c, nil
}

// createStream makes a stream. It does not wait for the server's reply: a refused stream is closed.
func (c *connection) createStream(headers ...string) (*spdystream.Stream, error) {
	h := http.Header{}
	for pair := range slices.Chunk(headers, 2) {
		h.Set(pair[0], pair[1])
	}
	s, err := c.spdy.CreateStream(h, nil, false)
	if err != nil {
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	c.streams = append(c.streams, s)
	return s, nil
}

// close ends the connection and returns when its goroutines have ended.
func (c *connection) close() {
	c.stop()
	_ = c.raw.Close()
	for _, s := range c.streams {
		_ = s.Reset() // unblocks readers of the stream, and writers to those readers
	}
	for {
		select {
		case <-c.served:
			return
		case <-time.After(time.Millisecond):
		}
		// The library waits until a refusal of a stream has been read.
		for _, s := range c.streams {
			_ = s.WaitTimeout(time.Millisecond)
		}
	}
}
