// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// TestShortExecsLoseNothing: a short command may end before its client has created its streams, or while the
// client still types. The client gets the whole output.
func TestShortExecsLoseNothing(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4096)
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
		_, err := fmt.Fprint(attach.Stdout(), long)
		return err
	}})
	overTransports(t, func(t *testing.T, stream streamFunc) {
		for i := range 30 {
			var stdout bytes.Buffer
			opts, path := remotecommand.StreamOptions{Stdout: &stdout}, execPath+"&output=1"
			if i%2 == 0 {
				opts.Tty, path = true, path+"&tty=1"
			}
			if i%3 == 0 {
				opts.Stdin, path = io.NopCloser(strings.NewReader(strings.Repeat("typed\n", 100_000))), path+"&input=1"
			}
			if err := stream(t.Context(), s, path, opts); err != nil || stdout.String() != long {
				t.Errorf("%s: got %d bytes, want %d (%v)", path, stdout.Len(), len(long), err)
			}
		}
	})
}

// TestOutputIsNotLostBehindUnreadInput: the client starts to read after the session is over, and the provider
// never read the client's input. The client gets the whole output.
func TestOutputIsNotLostBehindUnreadInput(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1<<14)
	typed, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
		defer close(ended)
		<-typed
		_, err := fmt.Fprint(attach.Stdout(), long)
		return err
	}})
	dialer := websocket.Dialer{Subprotocols: []string{"v5.channel.k8s.io"}}
	conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+execPath+"&output=1&input=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer resp.Body.Close()
	for range 20 { // more than readAheadLimit
		if err := conn.WriteMessage(websocket.BinaryMessage, make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
	close(typed)
	<-ended
	var out, status bytes.Buffer
	for {
		_, message, err := conn.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes of %d: %v", out.Len(), len(long), err)
		}
		switch message[0] {
		case remoteStdout:
			out.Write(message[1:])
		case remoteStatus:
			status.Write(message[1:])
		}
	}
	if out.String() != long || !strings.Contains(status.String(), `"Success"`) {
		t.Errorf("got %d bytes and %q, want %d and success", out.Len(), status.String(), len(long))
	}
}

const remoteStdout, remoteStatus = 1, 3
