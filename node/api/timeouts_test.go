// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const short = 100 * time.Millisecond

// dial opens a SPDY connection and creates no streams.
func dial(t *testing.T, s server, path, protocol string) httpstream.Connection {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(s.config())
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, mustURL(s.URL+path)).Dial(protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// If the two timeouts were swapped, the idle timeout would also close the connection, but the request would wait an hour for streams.
func TestSecurityE7ExecStreamsAreMadeInTime(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{
		RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
			t.Error("provider was called")
			return nil
		},
		StreamIdleTimeout:     time.Hour,
		StreamCreationTimeout: short,
	})
	conn := dial(t, s, execPath+"&output=1", "v4.channel.k8s.io")
	within(t, s.served, 20*time.Second, "end of a request without streams")
	within(t, conn.CloseChan(), 20*time.Second, "end of a connection without streams")
}

func TestSecurityE7IdleSessionEnds(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		t.Parallel()
		ended := make(chan struct{}, 1)
		s := serve(t, api.PodHandlerConfig{
			RunInContainer: func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
				<-ctx.Done()
				ended <- struct{}{}
				return ctx.Err()
			},
			StreamIdleTimeout:     20 * short, // a session may start slowly on a busy machine
			StreamCreationTimeout: time.Hour,
		})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			_ = stream(ctx, s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard})
		}()
		within(t, ended, 20*time.Second, "end of the provider's context in a quiet session")
		within(t, s.served, 20*time.Second, "end of the request")
	})
}

// A forwarded connection has two streams; the second one must be created in time.
func TestSecurityE7ForwardedStreamsAreMadeInTime(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{
		PortForward: func(context.Context, string, string, int32, io.ReadWriteCloser) error {
			t.Error("provider was called")
			return nil
		},
		StreamIdleTimeout:     time.Hour,
		StreamCreationTimeout: short,
	})
	conn := dial(t, s, "/portForward/default/web", "portforward.k8s.io")
	stream, err := conn.CreateStream(http.Header{
		"Port": {"80"}, "Streamtype": {"error"}, "Requestid": {"1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	message := make(chan string, 1)
	go func() {
		buf := make([]byte, 1024)
		n, _ := stream.Read(buf)
		message <- string(buf[:n])
	}()
	if got := within(t, message, 20*time.Second, "error message"); !strings.Contains(got, "timed out waiting for streams") {
		t.Errorf("got %q, want a message about the missing stream", got)
	}
}

func TestSecurityE7IdlePortForwardEnds(t *testing.T) {
	for over, dialer := range forwardDialers {
		t.Run(over, func(t *testing.T) {
			s := serve(t, api.PodHandlerConfig{
				PortForward:           func(context.Context, string, string, int32, io.ReadWriteCloser) error { return nil },
				StreamIdleTimeout:     short,
				StreamCreationTimeout: time.Hour,
			})
			d, err := dialer(s, "/portForward/default/web")
			if err != nil {
				t.Fatal(err)
			}
			conn, _, err := d.Dial("portforward.k8s.io")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			within(t, s.served, 20*time.Second, "end of a quiet connection")
		})
	}
}
