// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// pipes is a listener for connections within the process, in fake time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10250} }

// dial opens a connection.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// inFakeTime calls test with the server of a node.
func inFakeTime(t *testing.T, test func(t *testing.T, p *pipes, clientTLS *tls.Config)) {
	synctest.Test(t, func(t *testing.T) {
		ca := testpki.New(t)
		cfg := serverConfig(t, ca)
		cfg.Handler, cfg.HTTPListenAddr = WithAuth(NoAuth(), hello), ":10250"
		srv, err := newServer(cfg, newReviewsInMemory(t).client, "n1")
		if err != nil {
			t.Fatal(err)
		}
		clientTLS := ca.ClientConfig(t, nil, "")
		clientTLS.ServerName = "127.0.0.1"
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- srv.serve(ctx, newConnLimit(ctx, p, 100)) }()
		test(t, p, clientTLS)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// open returns the time that conn stays open while its client is idle.
func open(t *testing.T, conn net.Conn) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "EOF") {
		t.Logf("the connection ended with: %v", err)
	}
	return time.Since(begin)
}

// TestSecurityE1SlowClientsAreCut: the server closes a connection after 10 s with half a header, and an idle
// connection after 90 s.
func TestSecurityE1SlowClientsAreCut(t *testing.T) {
	inFakeTime(t, func(t *testing.T, p *pipes, clientTLS *tls.Config) {
		conn := tls.Client(p.dial(), clientTLS)
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		if took := open(t, conn); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("half a header kept a connection for %s, want 10 s", took)
		}

		conn = tls.Client(p.dial(), clientTLS)
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %s, %v", resp.Status, err)
		}
		begin := time.Now()
		if _, err := r.ReadByte(); err == nil {
			t.Error("the server sent something on an idle connection")
		}
		if took := time.Since(begin); took < 89*time.Second || took > 91*time.Second {
			t.Errorf("an idle connection lived for %s, want 90 s", took)
		}
	})
}

// TestSecurityE1HeadersHave64KiBAtMost sends a header within the limit, and a header beyond it.
func TestSecurityE1HeadersHave64KiBAtMost(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	cfg.Handler = WithAuth(NoAuth(), hello)
	s := serve(t, cfg, newReviews(t), &lineLogger{})
	for kib, want := range map[int]int{60: http.StatusOK, 72: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Big", strings.Repeat("x", kib<<10))
		resp, err := clientOf(ca.ClientConfig(t, nil, "")).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d KiB: got %d, want %d", kib, resp.StatusCode, want)
		}
	}
}

// TestSecurityE3HandshakesThatStallAreCut: the server closes a connection that sends nothing, or only half of
// the beginning of a handshake.
func TestSecurityE3HandshakesThatStallAreCut(t *testing.T) {
	inFakeTime(t, func(t *testing.T, p *pipes, _ *tls.Config) {
		for _, said := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
			conn := p.dial()
			if _, err := io.WriteString(conn, said); err != nil {
				t.Fatal(err)
			}
			if took := open(t, conn); took > 11*time.Second {
				t.Errorf("a handshake that stalls after %d bytes kept a connection for %s, want 10 s", len(said), took)
			}
		}
	})
}

// TestSecurityE4HTTP2IsOff: a client offers HTTP/2 in the handshake, begins with it, and asks for an upgrade.
// The server accepts none of them.
func TestSecurityE4HTTP2IsOff(t *testing.T) {
	inFakeTime(t, func(t *testing.T, p *pipes, clientTLS *tls.Config) {
		offering := clientTLS.Clone()
		offering.NextProtos = []string{"h2", "http/1.1"}
		conn := tls.Client(p.dial(), offering)
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
			t.Errorf("the server chose %q", got)
		}
		_ = conn.Close()

		only := clientTLS.Clone()
		only.NextProtos = []string{"h2"}
		if err := tls.Client(p.dial(), only).HandshakeContext(t.Context()); err == nil {
			t.Error("a client that speaks nothing but HTTP/2 was let in")
		}
		for name, first := range map[string]string{
			"prior knowledge": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
			"upgrade":         "GET / HTTP/1.1\r\nHost: n1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
		} {
			conn := tls.Client(p.dial(), clientTLS)
			if _, err := io.WriteString(conn, first); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: no answer: %v", name, err)
				continue
			}
			if resp.StatusCode == http.StatusSwitchingProtocols || resp.ProtoMajor != 1 {
				t.Errorf("%s: got %s %s", name, resp.Proto, resp.Status)
			}
			_ = conn.Close()
		}
	})
}
