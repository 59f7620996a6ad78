// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/moby/spdystream/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// raw is a connection to which a test writes arbitrary bytes.
type raw struct {
	net.Conn
	read *bufio.Reader
}

// upgradeRaw requests an upgrade with the lines of header, and returns the answer and the connection.
func upgradeRaw(t testing.TB, s server, path string, header ...string) (*http.Response, raw) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, strings.Join(header, "\r\n"))
	read := bufio.NewReader(conn)
	resp, err := http.ReadResponse(read, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, raw{conn, read}
}

func upgraded(t testing.TB, s server, path string, header ...string) raw {
	t.Helper()
	resp, conn := upgradeRaw(t, s, path, header...)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: got status %d, want 101", path, resp.StatusCode)
	}
	return conn
}

func toSPDY(protocol string) []string {
	return []string{"Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: " + protocol}
}

func toWebSocket(protocol string) []string {
	return []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: " + protocol}
}

// heap returns the bytes of the heap in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fill writes until the node accepts no more, or until limit bytes are written.
func (c raw) fill(t *testing.T, chunk []byte, limit int) (sent int) {
	t.Helper()
	for sent < limit {
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Write(chunk)
		sent += n
		if err != nil {
			break
		}
	}
	return sent
}

// TestSecurityE5UnreadFramesCostBoundedMemory: a client sends as much as the node takes, to a provider that does
// not read. The memory of the node stays bounded. The library alone would keep some 50 frames of 1 MiB each.
func TestSecurityE5UnreadFramesCostBoundedMemory(t *testing.T) {
	const limit = 24 << 20
	started, over := make(chan struct{}), make(chan struct{})
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		close(started)
		<-over
		return nil
	}})
	conn := upgraded(t, s, execPath+"&input=1", toSPDY("v4.channel.k8s.io")...)
	framer, err := spdy.NewFramer(conn, conn.read)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{"error", "stdin"} {
		if err := framer.WriteFrame(&spdy.SynStreamFrame{StreamId: spdy.StreamId(2*i + 1), Headers: http.Header{"Streamtype": {kind}}}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, started, 10*time.Second, "start of the session")
	frame := make([]byte, 8+1<<20)
	binary.BigEndian.PutUint32(frame, 3)
	binary.BigEndian.PutUint32(frame[4:], 1<<20)
	before := heap()
	sent := conn.fill(t, frame, 200<<20)
	if grown := heap() - before; grown > limit {
		t.Errorf("after %d MiB the node holds %d MiB more, want at most %d", sent>>20, grown>>20, limit>>20)
	}
	runtime.KeepAlive(frame)
	close(over)
	within(t, s.served, 10*time.Second, "end of the request")
}

// TestSecurityE5HostileFramesEndTheSession: a frame with a false size or with content that expands ends the
// session, and costs no memory.
func TestSecurityE5HostileFramesEndTheSession(t *testing.T) {
	const limit = 16 << 20
	bomb := func(t *testing.T) []byte { // 4 KiB become 4 MiB
		var sent bytes.Buffer
		framer, err := spdy.NewFramer(&sent, &sent)
		if err != nil {
			t.Fatal(err)
		}
		headers := http.Header{}
		for i := range 4 {
			headers.Set(fmt.Sprintf("x-%d", i), strings.Repeat("x", 1<<20))
		}
		if err := framer.WriteFrame(&spdy.SynStreamFrame{StreamId: 5, Headers: headers}); err != nil {
			t.Fatal(err)
		}
		return sent.Bytes()
	}
	ends := func(t *testing.T, s server, conn raw, frame []byte) {
		t.Helper()
		before := heap()
		_, _ = conn.Write(frame) // the node may have closed the connection
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn.read); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Error("the connection goes on")
		}
		if grown := heap() - before; grown > limit {
			t.Errorf("the node holds %d MiB more", grown>>20)
		}
		within(t, s.served, 40*time.Second, "end of the request")
	}
	cfg := api.PodHandlerConfig{
		PortForward:           greet,
		StreamCreationTimeout: short,
		RunInContainer: func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	for name, frame := range map[string][]byte{
		"settings that announce 4 billion": {0x80, 3, 0, 4, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff},
		"a stream of 16 MiB":               {0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff},
		"headers that inflate":             bomb(t),
	} {
		for path, protocol := range map[string]string{execPath + "&input=1": "v4.channel.k8s.io", "/portForward/default/web": "portforward.k8s.io"} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				s := serve(t, cfg)
				ends(t, s, upgraded(t, s, path, toSPDY(protocol)...), frame)
			})
		}
	}
	for name, frame := range map[string][]byte{
		"a message of 4 EiB":    {0x82, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4},
		"a message of 33 MiB":   {0x82, 0xff, 0, 0, 0, 0, 0x02, 0x10, 0, 0, 1, 2, 3, 4},
		"a close of no channel": {0x82, 0x82, 0, 0, 0, 0, 0xff, 0x77},
	} {
		t.Run("v5.channel.k8s.io "+name, func(t *testing.T) {
			s := serve(t, cfg)
			ends(t, s, upgraded(t, s, execPath+"&input=1&output=1", toWebSocket("v5.channel.k8s.io")...), frame)
		})
	}
}
