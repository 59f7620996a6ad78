// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// echoing is a provider for fuzzed clients. It echoes their input, and ends when the client ends.
func echoing() api.PodHandlerConfig {
	return api.PodHandlerConfig{
		RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
			_, err := io.Copy(attach.Stdout(), attach.Stdin())
			return err
		},
		PortForward: func(_ context.Context, _, _ string, _ int32, stream io.ReadWriteCloser) error {
			_, err := io.Copy(stream, stream)
			return err
		},
		StreamCreationTimeout: 10 * time.Millisecond, StreamIdleTimeout: time.Second,
	}
}

// converse sends a request and then the bytes of after. It returns the response, or nil without a response.
func converse(t *testing.T, s server, request, after string) *http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(conn, request+after) // the node may have closed the connection
	read := bufio.NewReader(conn)
	resp, err := http.ReadResponse(read, nil)
	if err != nil {
		return nil
	}
	_ = conn.(*net.TCPConn).CloseWrite() // only now: the node does not serve a client that has left
	body, _ := io.ReadAll(io.LimitReader(read, 1<<20))
	if strings.Contains(string(body), "canary") {
		t.Errorf("the answer repeats the token: %.300q", body)
	}
	return resp
}

// FuzzUpgradeHeaders requests upgrades with any headers. The status is 101 or a client error, no handler panics, and no response repeats
// the token.
func FuzzUpgradeHeaders(f *testing.F) {
	for _, seed := range [][4]string{
		{"Upgrade", "SPDY/3.1", "v4.channel.k8s.io", ""},
		{"keep-alive, Upgrade", "spdy/3.1, websocket", "v5.channel.k8s.io", "v5.channel.k8s.io"},
		{"upgrade", "WebSocket", "", "v4.base64.channel.k8s.io, SPDY/3.1+portforward.k8s.io"},
		{"Upgrade", "websocket", "portforward.k8s.io", "SPDY/3.1+portforward.k8s.io"},
		{"Upgrade", "websocket", "", "SPDY/3.1+other.k8s.io,,"},
		{"upgrade", "h2c", ",,", " "},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], "dGhlIHNhbXBsZSBub25jZQ==")
	}
	s := serve(f, echoing())
	f.Fuzz(func(t *testing.T, connection, upgrade, spdyProtocol, wsProtocol, key string) {
		if strings.ContainsAny(connection+upgrade+spdyProtocol+wsProtocol+key, "\r\n") {
			return // a line break would add other headers
		}
		before := panicsCounted(t)
		for _, path := range []string{execPath + "&input=1&output=1", "/portForward/default/web?port=80", "/portForward/default/web"} {
			resp := converse(t, s, fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer canary\r\nConnection: %s\r\nUpgrade: %s\r\n"+
				"X-Stream-Protocol-Version: %s\r\nSec-WebSocket-Protocol: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
				path, connection, upgrade, spdyProtocol, wsProtocol, key), "")
			if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols && resp.StatusCode/100 != 4 {
				t.Errorf("%s: got status %d", path, resp.StatusCode)
			}
		}
		if after := panicsCounted(t); after != before {
			t.Errorf("%d handlers panicked", after-before)
		}
	})
}

// FuzzWebSocketFrames sends arbitrary bytes instead of messages.
func FuzzWebSocketFrames(f *testing.F) {
	f.Add([]byte{0x82, 0x86, 0, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x82, 0x82, 0, 0, 0, 0, 0xff, 0})
	f.Add([]byte{0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4})
	f.Add([]byte{0x89, 0x80, 0, 0, 0, 0, 0x88, 0x82, 0, 0, 0, 0, 3, 0xe8})
	f.Add([]byte{0x02, 0x81, 0, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, 'x', 0x82, 0x81, 0, 0, 0, 0, 4})
	f.Add([]byte{0x82, 0x8c, 0, 0, 0, 0, 0x80, 3, 0, 4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}) // contains SPDY
	s := serve(f, echoing())
	f.Fuzz(func(t *testing.T, frames []byte) {
		before := panicsCounted(t)
		for protocol, path := range map[string]string{
			"v4.channel.k8s.io": execPath + "&input=1&output=1", "v5.channel.k8s.io": execPath + "&input=1&output=1&tty=1",
			"v4.base64.channel.k8s.io": "/portForward/default/web?port=80", "SPDY/3.1+portforward.k8s.io": "/portForward/default/web",
		} {
			request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, strings.Join(toWebSocket(protocol), "\r\n"))
			if resp := converse(t, s, request, string(frames)); resp == nil || resp.StatusCode != http.StatusSwitchingProtocols {
				t.Errorf("%s: got %v, want 101", protocol, resp)
			}
			within(t, s.served, 30*time.Second, "end of the request")
		}
		if after := panicsCounted(t); after != before {
			t.Errorf("%d handlers panicked", after-before)
		}
	})
}
