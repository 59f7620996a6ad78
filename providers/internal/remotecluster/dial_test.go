// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// TestDialEndsWithItsCaller uses a frozen API server, which accepts connections and sends nothing. When a caller cancels, the call
// returns, over a websocket, and over SPDY after the websocket was refused. The connection of the websocket is closed.
func TestDialEndsWithItsCaller(t *testing.T) {
	for name, refusals := range map[string]int{"websocket": 0, "SPDY": 1} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			ended := make(chan error, 1)
			go func() {
				_, err := dialPod(ctx, &rest.Config{Host: "http://" + listener.Addr().String()}, &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/"})
				ended <- err
			}()
			for i := range refusals + 1 {
				conn, err := listener.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				read := bufio.NewReader(conn)
				if _, err := http.ReadRequest(read); err != nil {
					t.Fatal(err)
				}
				if i < refusals {
					if _, err := io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); err != nil {
						t.Fatal(err)
					}
					continue
				}
				leave()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				if refusals == 0 { // the connection of SPDY stays until the server ends it
					if _, err := read.ReadByte(); !errors.Is(err, io.EOF) {
						t.Errorf("the connection: %v", err)
					}
				}
			}
		})
	}
}
