// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/moby/spdystream/spdy"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const mostOfAFrame = 1 << 20

// announcing returns the header of a frame with the given size, and with a mask of zeroes.
func announcing(first byte, size uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, size), 0, 0, 0, 0)
}

// TestSecurityE11WebSocketClientIsToldWhyItIsCut: a forbidden frame ends the session before the frame's content
// has come. The client of every protocol gets the reason.
func TestSecurityE11WebSocketClientIsToldWhyItIsCut(t *testing.T) {
	cfg := api.PodHandlerConfig{RunInContainer: untilCut, PortForward: func(ctx context.Context, _, _ string, _ int32, _ io.ReadWriteCloser) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	paths := map[string]string{
		"v5.channel.k8s.io": execPath + "&input=1&output=1", "v4.channel.k8s.io": execPath + "&input=1&output=1", "base64.channel.k8s.io": execPath + "&input=1&output=1",
		"v4.base64.channel.k8s.io": "/portForward/default/web?port=80", "SPDY/3.1+portforward.k8s.io": "/portForward/default/web",
	}
	for name, c := range map[string]struct {
		sent []byte
		code int
	}{
		"a frame of 1 MiB and one byte":    {announcing(0x82, mostOfAFrame+1), websocket.CloseMessageTooBig},
		"a frame of 4 EiB":                 {announcing(0x82, 1<<62), websocket.CloseMessageTooBig},
		"a frame that goes on, of 2 MiB":   {append([]byte{0x02, 0x80, 0, 0, 0, 0}, announcing(0x80, 2<<20)...), websocket.CloseMessageTooBig},
		"a compressed frame":               {[]byte{0xc2, 0x81, 0, 0, 0, 0, 0}, websocket.CloseProtocolError},
		"a frame that is not masked":       {[]byte{0x82, 1, 0}, websocket.CloseProtocolError},
		"a ping of 126 bytes":              {append([]byte{0x89, 0x80 | 126, 0, 126, 0, 0, 0, 0}, make([]byte, 126)...), websocket.CloseProtocolError},
		"a close in parts":                 {[]byte{0x08, 0x80, 0, 0, 0, 0}, websocket.CloseProtocolError},
		"what goes on and has not begun":   {[]byte{0x80, 0x81, 0, 0, 0, 0, 0}, websocket.CloseProtocolError},
		"a message that begins within one": {[]byte{0x02, 0x81, 0, 0, 0, 0, 0, 0x82, 0x81, 0, 0, 0, 0, 0}, websocket.CloseProtocolError},
		"no such kind of frame":            {[]byte{0x83, 0x81, 0, 0, 0, 0, 0}, websocket.CloseProtocolError},
	} {
		for protocol, path := range paths {
			t.Run(protocol+" "+name, func(t *testing.T) {
				s := serve(t, cfg)
				dialer := websocket.Dialer{Subprotocols: []string{protocol}}
				conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				defer resp.Body.Close()
				if _, err := conn.NetConn().Write(c.sent); err != nil {
					t.Fatal(err)
				}
				_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				for err == nil {
					_, _, err = conn.ReadMessage()
				}
				var closed *websocket.CloseError
				if !errors.As(err, &closed) || closed.Code != c.code || !strings.Contains(closed.Text, "the client sent") {
					t.Errorf("got %v, want a close frame of code %d with the reason", err, c.code)
				}
				conn.Close()
				within(t, s.served, 10*time.Second, "end of the request")
			})
		}
	}
}

func untilCut(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestSecurityE11SPDYClientIsToldWhyItIsCut: over SPDY, the error stream carries the reason.
func TestSecurityE11SPDYClientIsToldWhyItIsCut(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: untilCut})
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
	if _, err := conn.Write([]byte{0, 0, 0, 3, 0, 0x10, 0, 1}); err != nil { // 1 MiB and one byte
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var told []byte
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			break
		}
		if data, ok := frame.(*spdy.DataFrame); ok && data.StreamId == 1 {
			told = append(told, data.Data...)
		}
	}
	if !strings.Contains(string(told), "more than 1048576 bytes") {
		t.Errorf("the stream for errors has %q, want the reason", told)
	}
	conn.Close()
	within(t, s.served, 10*time.Second, "end of the request")
}

// TestSecurityE11LargeFramesAndPartsArriveWhole: input arrives whole, in frames of any size.
func TestSecurityE11LargeFramesAndPartsArriveWhole(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcde\n"), mostOfAFrame/16)[:mostOfAFrame-1]
	echo := func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
		got := make([]byte, len(content))
		if _, err := io.ReadFull(attach.Stdin(), got); err != nil {
			return err
		}
		if !bytes.Equal(got, content) {
			return errors.New("it arrived changed")
		}
		_, err := io.WriteString(attach.Stdout(), "whole")
		return err
	}
	s := serve(t, api.PodHandlerConfig{RunInContainer: echo})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		var out buffer
		err := stream(t.Context(), s, execPath+"&input=1&output=1", remotecommand.StreamOptions{Stdin: bytes.NewReader(content), Stdout: &out})
		if err != nil || out.buf.String() != "whole" {
			t.Errorf("got %q, %v", out.buf.Bytes(), err)
		}
	})
	for name, c := range map[string]struct {
		protocol string
		kind     int
		message  []byte
		parts    int
	}{
		"one frame":          {"v5.channel.k8s.io", websocket.BinaryMessage, append([]byte{0}, content...), 2 << 20},
		"parts of 4 KiB":     {"v4.channel.k8s.io", websocket.BinaryMessage, append([]byte{0}, content...), 4 << 10},
		"base64 in parts":    {"base64.channel.k8s.io", websocket.TextMessage, []byte("0" + base64.StdEncoding.EncodeToString(content)), 1021},
		"v4, base64, a line": {"v4.base64.channel.k8s.io", websocket.TextMessage, []byte("0" + base64.StdEncoding.EncodeToString(content[:600000]) + "\n"), 2 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			dialer := websocket.Dialer{Subprotocols: []string{c.protocol}, WriteBufferSize: c.parts}
			conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+execPath+"&input=1&output=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			defer resp.Body.Close()
			if err := conn.WriteMessage(c.kind, c.message); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(string(c.message), "\n") && c.kind == websocket.TextMessage {
				if err := conn.WriteMessage(c.kind, []byte("0"+base64.StdEncoding.EncodeToString(content[600000:]))); err != nil {
					t.Fatal(err)
				}
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			var got []byte
			for err == nil {
				var message []byte
				if _, message, err = conn.ReadMessage(); len(message) > 1 {
					got = append(got, message[1:]...)
				}
			}
			if !bytes.Contains(got, []byte("whole")) && !bytes.Contains(got, []byte("d2hvbGU")) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestSecurityE11SizeOfATerminalIsBounded: the message with a terminal's size has a limit. Without the limit,
// its reader would keep all of an endless message.
func TestSecurityE11SizeOfATerminalIsBounded(t *testing.T) {
	endless := `{"Width":"` + strings.Repeat("}", 1000)
	s := serve(t, api.PodHandlerConfig{RunInContainer: untilCut})
	for _, protocol := range []string{"v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"} {
		dialer := websocket.Dialer{Subprotocols: []string{protocol}}
		conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+execPath+"&input=1&output=1&tty=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		kind, message := websocket.BinaryMessage, append([]byte{4}, endless...)
		if strings.Contains(protocol, "base64") {
			kind, message = websocket.TextMessage, append([]byte{'4'}, base64.StdEncoding.EncodeToString([]byte(endless))...)
		}
		if err := conn.WriteMessage(kind, message); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		for err == nil {
			_, _, err = conn.ReadMessage()
		}
		if !websocket.IsCloseError(err, websocket.CloseProtocolError) {
			t.Errorf("%s: got %v, want a close frame with the reason", protocol, err)
		}
		conn.Close()
		resp.Body.Close()
		within(t, s.served, 10*time.Second, "end of the request")
	}
}

// A session counts until the provider has returned, because its command may run on after its client has left.
func TestSecurityE12SessionCountsUntilItsCommandHasEnded(t *testing.T) {
	begun, over := make(chan struct{}, 1), make(chan struct{})
	s := serve(t, api.PodHandlerConfig{
		StreamLimits: api.NewStreamLimits(1, 1),
		RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
			begun <- struct{}{}
			<-over
			return nil
		},
	})
	conn := upgraded(t, s, execPath+"&output=1", toWebSocket("v5.channel.k8s.io")...)
	within(t, begun, 10*time.Second, "start of the session")
	conn.Close()
	if resp, _ := upgradeRaw(t, s, execPath+"&output=1", toWebSocket("v5.channel.k8s.io")...); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("while the command runs: got status %d, want 429", resp.StatusCode)
	}
	within(t, s.served, 10*time.Second, "refusal")
	close(over)
	within(t, s.served, 10*time.Second, "end of the session")
	upgraded(t, s, execPath+"&output=1", toWebSocket("v5.channel.k8s.io")...)
}
