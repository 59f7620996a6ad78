// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func TestProviderPanicCostsOneSession(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		panic("canary")
	}})
	before := panicsCounted(t)
	overTransports(t, func(t *testing.T, stream streamFunc) {
		err := stream(t.Context(), s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "panicked") || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want an error that tells of a panic without its value", err)
		}
	})
	if got := panicsCounted(t); got < before+len(transports) {
		t.Errorf("%d panics were counted, want one for each session", got-before)
	}
}

// TestClientThatLeavesBeforeTheUpgradeIsNoPanic: a client that leaves between its request and the upgrade of its
// connection causes no panic.
func TestClientThatLeavesBeforeTheUpgradeIsNoPanic(t *testing.T) {
	run := func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, hijack := range map[string]func(http.ResponseWriter, *http.Request) (net.Conn, *bufio.ReadWriter, error){
		"it cannot be taken over": func(http.ResponseWriter, *http.Request) (net.Conn, *bufio.ReadWriter, error) {
			return nil, nil, errors.New("unexpected Peek failure")
		},
		"it is taken over late": func(w http.ResponseWriter, req *http.Request) (net.Conn, *bufio.ReadWriter, error) {
			<-req.Context().Done()
			<-time.After(time.Second) // the connection is abandoned after half of this time
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, next, said := recorded(t, api.PodHandlerConfig{GetPod: onePod, RunInContainer: run}, func(w http.ResponseWriter, req *http.Request) http.ResponseWriter {
				return hijacked{w, func() (net.Conn, *bufio.ReadWriter, error) { return hijack(w, req) }}
			})
			before := panicsCounted(t)
			for transport, header := range map[string][]string{
				"WebSocket v4": toWebSocket("v4.channel.k8s.io"), "WebSocket v5": toWebSocket("v5.channel.k8s.io"), "SPDY": toSPDY("v4.channel.k8s.io"),
			} {
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(conn, "GET /exec/default/web/app?output=1&command=a HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", strings.Join(header, "\r\n"))
				conn.Close()
				if got := next().Outcome; strings.Contains(got, "panic") {
					t.Errorf("%s: got outcome %q", transport, got)
				}
			}
			if got := panicsCounted(t); got != before || strings.Contains(said.String(), "panicked") {
				t.Errorf("%d panics were counted: %s", got-before, said.String())
			}
		})
	}
}

// hijacked is a ResponseWriter with a test's Hijack function.
type hijacked struct {
	http.ResponseWriter
	hijack func() (net.Conn, *bufio.ReadWriter, error)
}

func (w hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// panicsCounted returns the value of the metric virtual_kubelet_provider_panics_total.
func panicsCounted(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "virtual_kubelet_provider_panics_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return int(total)
}

// typed is a stdin that closes sent when all of it was read.
type typed struct {
	io.Reader
	sent chan struct{}
}

func typing(size int) *typed {
	return &typed{strings.NewReader(strings.Repeat("x", size)), make(chan struct{})}
}

func (r *typed) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF {
		close(r.sent)
	}
	return n, err
}

// The provider never reads stdin, and the client has sent more of it than the
// streaming libraries read ahead.
func TestSecurityE7ContextEndsWhenClientLeaves(t *testing.T) {
	for name, broken := range map[string]bool{"says goodbye": false, "breaks": true} {
		for _, path := range []string{execPath, "/attach/default/web/app?x=y"} {
			t.Run(path[1:5]+" "+name, func(t *testing.T) {
				overTransports(t, func(t *testing.T, stream streamFunc) { leaveDuring(t, stream, path, broken) })
			})
		}
	}
}

func leaveDuring(t *testing.T, stream streamFunc, path string, broken bool) {
	started := make(chan struct{})
	ended := make(chan struct{})
	wait := func(ctx context.Context, _, _, _ string, _ api.AttachIO) error {
		close(started)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	s, breakAll := serve(t, api.PodHandlerConfig{
		AttachToContainer: wait,
		RunInContainer: func(ctx context.Context, ns, pod, container string, _ []string, attach api.AttachIO) error {
			return wait(ctx, ns, pod, container, attach)
		},
	}).through(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stdin := typing(200 << 10)
	go func() {
		_ = stream(ctx, s, path+"&input=1&output=1", remotecommand.StreamOptions{Stdin: stdin, Stdout: io.Discard})
	}()
	within(t, started, 20*time.Second, "start of the session")
	within(t, stdin.sent, 20*time.Second, "sending of stdin")
	if broken {
		breakAll()
	} else {
		leave()
	}
	within(t, ended, 20*time.Second, "end of the provider's context")
	within(t, s.served, 20*time.Second, "end of the request")
}

func TestStreamsEndWhenClientLeaves(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		started := make(chan struct{})
		ended := make(chan struct{})
		s := serve(t, api.PodHandlerConfig{AttachToContainer: func(_ context.Context, _, _, _ string, attach api.AttachIO) error {
			close(started)
			_, err := io.Copy(io.Discard, attach.Stdin()) // and ignores the context
			close(ended)
			return err
		}})
		ctx, leave := context.WithCancel(t.Context())
		stdin, typing := io.Pipe()
		defer typing.Close()
		go func() {
			_ = stream(ctx, s, "/attach/default/web/app?input=1&output=1", remotecommand.StreamOptions{Stdin: stdin, Stdout: io.Discard})
		}()
		within(t, started, 20*time.Second, "start of the session")
		leave()
		within(t, ended, 20*time.Second, "end of stdin")
	})
}

// TestSessionEndsWhenServerStops: the base context ends the sessions of a server that stops, because net/http no
// longer owns their connections. The provider of this test ignores its context.
func TestSessionEndsWhenServerStops(t *testing.T) {
	overTransports(t, func(t *testing.T, stream streamFunc) {
		started := make(chan struct{})
		s, stop := serveUntil(t, api.PodHandlerConfig{RunInContainer: func(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
			close(started)
			_, err := io.Copy(io.Discard, attach.Stdin())
			return err
		}})
		stdin, terminal := io.Pipe()
		defer terminal.Close()
		go func() {
			_ = stream(t.Context(), s, execPath+"&input=1&output=1", remotecommand.StreamOptions{Stdin: stdin, Stdout: io.Discard})
		}()
		within(t, started, 20*time.Second, "start of the session")
		stop()
		within(t, s.served, 20*time.Second, "end of the request")
	})
}

// The context ended during the authorization of the request. The WebSocket library would panic, and the log would blame the provider.
func TestSessionDoesNotBeginAfterTheEnd(t *testing.T) {
	h := api.PodHandler(api.PodHandlerConfig{RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
		t.Error("provider was called")
		return nil
	}}, true)
	s := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithCancel(req.Context())
		cancel()
		h.ServeHTTP(w, req.WithContext(ctx))
	}))
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{"v5.channel.k8s.io"}}).
		DialContext(t.Context(), strings.Replace(s.URL, "http", "ws", 1)+execPath+"&output=1", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %v, %v, want 503", resp, err)
	}
}

// TestStopOfServerIsNoSuccess: when the server stops, a connected client gets an error, even if the provider
// returns nil.
func TestStopOfServerIsNoSuccess(t *testing.T) {
	for name, outcome := range map[string]func(context.Context) error{
		"provider returns the error of its context": context.Context.Err,
		"provider returns nil":                      func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			overTransports(t, func(t *testing.T, stream streamFunc) {
				started := make(chan struct{})
				s, stop := serveUntil(t, api.PodHandlerConfig{RunInContainer: func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
					close(started)
					<-ctx.Done()
					return outcome(ctx)
				}})
				result := make(chan error, 1)
				go func() {
					result <- stream(t.Context(), s, execPath+"&output=1", remotecommand.StreamOptions{Stdout: io.Discard})
				}()
				within(t, started, 20*time.Second, "start of the session")
				stop()
				if err := within(t, result, 20*time.Second, "end of the client"); err == nil {
					t.Error("the client was told that its command succeeded")
				}
			})
		})
	}
}

func TestNothingIsLeftAfterDisconnects(t *testing.T) {
	// The client's own goroutines do not count. Over WebSocket the client leaves some behind, and the goroutines
	// of other tests may still be ending.
	options := []goleak.Option{goleak.IgnoreCurrent()}
	for _, name := range []string{
		"(*wsStreamExecutor).StreamWithContext.func1", "(*wsStreamCreator).readDemuxLoop", "(*heartbeat).start",
		"(*streamProtocolV2).copyStdin.func1", "(*streamProtocolV2).copyStdin.func2", "(*streamProtocolV2).copyStdout.func1",
		"(*streamProtocolV3).handleResizes.func1", "watchErrorStream.func1",
	} {
		options = append(options, goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand."+name))
	}
	defer goleak.VerifyNone(t, options...)
	started := make(chan struct{}, 1)
	srv := serve(t, api.PodHandlerConfig{RunInContainer: func(ctx context.Context, _, _, _ string, _ []string, _ api.AttachIO) error {
		started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}})
	defer srv.Close()
	overTransports(t, func(t *testing.T, stream streamFunc) {
		for range 17 {
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			terminal := make(sizes)
			go func() {
				left <- stream(ctx, srv, execPath+"&output=1&tty=1", remotecommand.StreamOptions{
					Stdout: io.Discard, Tty: true, TerminalSizeQueue: terminal,
				})
			}()
			within(t, started, 20*time.Second, "start of the session")
			leave()
			if err := within(t, left, 20*time.Second, "end of the client"); err == nil {
				t.Error("a client that left early got no error")
			}
			within(t, srv.served, 20*time.Second, "end of the request")
			close(terminal)
		}
	})
}
