// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func sayHello(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
	_, err := fmt.Fprint(attach.Stdout(), "hello")
	return err
}

// TestSPDYProtocols: a client may offer v5 alone over SPDY, where v5 is the same as v4.
func TestSPDYProtocols(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: sayHello})
	for _, protocols := range [][]string{
		{"channel.k8s.io"}, {"v2.channel.k8s.io"}, {"v3.channel.k8s.io"}, {"v4.channel.k8s.io"}, {"v5.channel.k8s.io", "v4.channel.k8s.io"}, {"v5.channel.k8s.io"},
	} {
		transport, upgrader, err := spdy.RoundTripperFor(s.config())
		if err != nil {
			t.Fatal(err)
		}
		executor, err := remotecommand.NewSPDYExecutorForProtocols(transport, upgrader, http.MethodPost, mustURL(s.URL+execPath+"&output=1"), protocols...)
		if err != nil {
			t.Fatal(err)
		}
		var stdout buffer
		if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout}); err != nil || stdout.String() != "hello" {
			t.Errorf("%s: got %q, %v", protocols, stdout.String(), err)
		}
	}
}

// The oldest clients name no protocol.
func TestSPDYWithoutProtocolHeaderIsV1(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: sayHello, PortForward: greet})
	for path, want := range map[string]string{execPath + "&output=1": "channel.k8s.io", "/portForward/default/web": "portforward.k8s.io"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-Stream-Protocol-Version") != want {
			t.Errorf("%s: got %v, %v, want 101 with %s", path, resp, err, want)
		}
		conn.Close()
	}
}

func TestWebSocketProtocols(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: sayHello})
	for protocol, want := range map[string]string{
		"":                         "\x01hello",
		"channel.k8s.io":           "\x01hello",
		"base64.channel.k8s.io":    "1" + base64.StdEncoding.EncodeToString([]byte("hello")),
		"v4.channel.k8s.io":        "\x01hello",
		"v4.base64.channel.k8s.io": "1" + base64.StdEncoding.EncodeToString([]byte("hello")),
		"v5.channel.k8s.io":        "\x01hello",
	} {
		dialer := websocket.Dialer{}
		if protocol != "" {
			dialer.Subprotocols = []string{protocol}
		}
		conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+execPath+"&output=1", nil)
		if err != nil {
			t.Fatalf("%q: %v", protocol, err)
		}
		resp.Body.Close()
		var got string
		for len(got) <= 1 { // empty messages come first
			_, message, err := conn.ReadMessage()
			if err != nil {
				t.Fatalf("%q: %v", protocol, err)
			}
			got = string(message)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", protocol, got, want)
		}
		conn.Close()
		within(t, s.served, 20*time.Second, "end of the request")
	}
}

// TestSPDYWithoutErrorStream: a client that creates unexpected streams ends its own session only.
func TestSPDYWithoutErrorStream(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: sayHello})
	conn := dial(t, s, execPath+"&output=1", "v4.channel.k8s.io")
	for range 2 {
		if _, err := conn.CreateStream(http.Header{"Streamtype": {"stdout"}}); err != nil {
			t.Fatal(err)
		}
	}
	within(t, s.served, 20*time.Second, "end of the request")
	within(t, conn.CloseChan(), 20*time.Second, "end of the connection")
}

// TestSPDYWithoutPromisedStream: a session with a missing stream is refused. The library counts the streams and
// does not check their types. A provider that writes to a nil stream in a goroutine of its own would end the
// process.
func TestSPDYWithoutPromisedStream(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		t.Error("provider was called")
		return nil
	}})
	conn := dial(t, s, execPath+"&input=1&output=1", "v4.channel.k8s.io")
	status, err := conn.CreateStream(http.Header{"Streamtype": {"error"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.CreateStream(http.Header{"Streamtype": {"stdin"}}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 1024)
	n, err := status.Read(got)
	if !strings.Contains(string(got[:n]), "stdout") {
		t.Errorf("got %q, %v on the error stream, want one that names the missing stream", got[:n], err)
	}
	within(t, s.served, 20*time.Second, "end of the request")
}
