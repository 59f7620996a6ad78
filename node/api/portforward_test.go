// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// forwarding is a port-forward session, as kubectl port-forward opens it.
type forwarding struct {
	ports []portforward.ForwardedPort
	stop  chan struct{}
	done  chan error
}

// forwardDialers lists the protocols by which a client can reach port-forward.
var forwardDialers = map[string]func(s server, path string) (httpstream.Dialer, error){
	"SPDY": func(s server, path string) (httpstream.Dialer, error) {
		transport, upgrader, err := spdy.RoundTripperFor(s.config())
		if err != nil {
			return nil, err
		}
		return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, mustURL(s.URL+path)), nil
	},
	"SPDY in WebSocket": func(s server, path string) (httpstream.Dialer, error) {
		return portforward.NewSPDYOverWebsocketDialer(mustURL(s.URL+path), s.config())
	},
}

func forward(t *testing.T, s server, over, path string, ports ...string) *forwarding {
	t.Helper()
	dialer, err := forwardDialers[over](s, path)
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarding{stop: make(chan struct{}), done: make(chan error, 1)}
	ready := make(chan struct{})
	fw, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, ports, f.stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { f.done <- fw.ForwardPorts() }()
	within(t, ready, 20*time.Second, "start of the forwarding")
	f.ports, err = fw.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forwarding) dial(t *testing.T, i int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", f.ports[i].Local))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// greet answers one line with the port.
func greet(_ context.Context, ns, pod string, port int32, stream io.ReadWriteCloser) error {
	buf := make([]byte, 100)
	n, err := stream.Read(buf)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stream, "%s/%s:%d got %s", ns, pod, port, buf[:n])
	return err
}

func TestPortForwardManyPortsManyConnections(t *testing.T) {
	for over := range forwardDialers {
		t.Run(over, func(t *testing.T) {
			s := serve(t, api.PodHandlerConfig{PortForward: greet})
			f := forward(t, s, over, "/portForward/default/web", "0:80", "0:443", "0:8080")
			var clients sync.WaitGroup
			for i, port := range []int{80, 443, 8080} {
				for n := range 10 {
					conn := f.dial(t, i)
					clients.Go(func() {
						fmt.Fprintf(conn, "hello %d", n)
						got, err := io.ReadAll(conn)
						if want := fmt.Sprintf("default/web:%d got hello %d", port, n); err != nil || string(got) != want {
							t.Errorf("got %q, %v, want %q", got, err, want)
						}
					})
				}
			}
			clients.Wait()
			close(f.stop)
			if err := within(t, f.done, 20*time.Second, "end of the client"); err != nil {
				t.Error(err)
			}
			within(t, s.served, 20*time.Second, "end of the request")
		})
	}
}

// connect opens a forwarded connection and returns its two streams.
func connect(t *testing.T, conn httpstream.Connection, id, port int) (data, errors io.ReadWriter) {
	t.Helper()
	open := func(kind string) httpstream.Stream {
		stream, err := conn.CreateStream(http.Header{
			"Port": {fmt.Sprint(port)}, "Requestid": {fmt.Sprint(id)}, "Streamtype": {kind},
		})
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	errors = open("error")
	return open("data"), errors
}

func TestSecurityE7PortForwardContextEndsWhenClientLeaves(t *testing.T) {
	for over, dialer := range forwardDialers {
		for name, broken := range map[string]bool{"says goodbye": false, "breaks": true} {
			t.Run(over+" "+name, func(t *testing.T) {
				started := make(chan struct{}, 2)
				ended := make(chan struct{}, 2)
				s, breakAll := serve(t, api.PodHandlerConfig{PortForward: func(ctx context.Context, _, _ string, _ int32, _ io.ReadWriteCloser) error {
					started <- struct{}{}
					<-ctx.Done()
					ended <- struct{}{}
					return ctx.Err()
				}}).through(t)
				d, err := dialer(s, "/portForward/default/web")
				if err != nil {
					t.Fatal(err)
				}
				conn, _, err := d.Dial("portforward.k8s.io")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				for id := range 2 {
					data, _ := connect(t, conn, id, 80)
					fmt.Fprint(data, strings.Repeat("x", 100<<10)) // the provider does not read it
					within(t, started, 20*time.Second, "start of a connection")
				}
				if broken {
					breakAll()
				} else {
					conn.Close()
				}
				for range 2 {
					within(t, ended, 20*time.Second, "end of the provider's context")
				}
				within(t, s.served, 20*time.Second, "end of the request")
			})
		}
	}
}

// TestPortForwardErrorReachesClient: a connection that fails or panics does not affect the other connections.
func TestPortForwardErrorReachesClient(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{PortForward: func(ctx context.Context, ns, pod string, port int32, stream io.ReadWriteCloser) error {
		if port < 3 { // a stream may be reset before it is opened if the provider fails at once
			if _, err := stream.Read(make([]byte, 1)); err != nil {
				return err
			}
		}
		switch port {
		case 1:
			return errBackend
		case 2:
			panic("canary")
		default:
			return greet(ctx, ns, pod, port, stream)
		}
	}})
	conn := dial(t, s, "/portForward/default/web", "portforward.k8s.io")
	for port, want := range map[int]string{1: errBackend.Error(), 2: "panicked"} {
		data, errors := connect(t, conn, port, port)
		fmt.Fprint(data, "x")
		if got, err := io.ReadAll(errors); !strings.Contains(string(got), want) || strings.Contains(string(got), "canary") {
			t.Errorf("port %d: got %q, %v on the error stream, want %q in it", port, got, err, want)
		}
	}
	data, _ := connect(t, conn, 3, 3)
	fmt.Fprint(data, "x")
	if got, err := io.ReadAll(data); string(got) != "default/web:3 got x" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSecurityE7PortForwardOverWebSocket(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, api.PodHandlerConfig{PortForward: func(ctx context.Context, ns, pod string, port int32, stream io.ReadWriteCloser) error {
		if err := greet(ctx, ns, pod, port, stream); err != nil {
			return err
		}
		<-ctx.Done()
		close(ended)
		return nil
	}})
	dialer := websocket.Dialer{Subprotocols: []string{"v4.channel.k8s.io"}}
	conn, resp, err := dialer.DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+"/portForward/default/web?port=80", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for channel := range 2 {
		want := binary.LittleEndian.AppendUint16([]byte{byte(channel)}, 80)
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != string(want) {
			t.Fatalf("channel %d: got %q, %v, want its port", channel, got, err)
		}
	}
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte("\x00hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != "\x00default/web:80 got hello" {
		t.Errorf("got %q, %v", got, err)
	}
	conn.Close()
	within(t, ended, 20*time.Second, "end of the provider's context")
	within(t, s.served, 20*time.Second, "end of the request")
}

func TestPortForwardRefusesWhatCannotWork(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{PortForward: greet})
	for _, path := range []string{"/portForward/default/web", "/portForward/default/w_b"} {
		if code, _ := s.get(t, path); code != http.StatusBadRequest {
			t.Errorf("GET %s: got %d, want 400", path, code)
		}
	}
	ws := strings.Replace(s.URL, "http", "ws", 1)
	for url, protocol := range map[string]string{
		ws + "/portForward/default/web":         "v4.channel.k8s.io", // no port
		ws + "/portForward/default/web?port=0":  "v4.channel.k8s.io",
		ws + "/portForward/default/web?port=8x": "v4.channel.k8s.io",
	} {
		dialer := websocket.Dialer{Subprotocols: []string{protocol}}
		_, resp, err := dialer.DialContext(t.Context(), url, nil)
		if err == nil || resp == nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s over %s: got %v, want 400", url, protocol, err)
		}
	}
}
