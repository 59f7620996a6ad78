// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// TestMain silences the streaming server.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}

// process is the process behind a session.
type process struct {
	id     string
	cmd    []string
	in     io.Reader
	out    io.WriteCloser
	err    io.WriteCloser
	tty    bool
	resize <-chan remotecommand.TerminalSize
}

// server is the streaming server of a runtime. Its processes are functions.
type server struct {
	run  func(context.Context, process) error
	port func(ctx context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error

	streaming.Server
	runtime  *fakecri.Runtime
	streams  *Streams
	sandbox  string
	id       string // a container that runs
	listener *cuttable
}

func (s *server) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return s.run(ctx, process{id, cmd, in, out, err, tty, resize})
}

func (s *server) Attach(ctx context.Context, id string, in io.Reader, out, err io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return s.run(ctx, process{id, nil, in, out, err, tty, resize})
}

func (s *server) PortForward(ctx context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error {
	return s.port(ctx, sandbox, port, stream)
}

// url returns the URL with which a runtime answers the request.
func (s *server) url(request any) (string, error) {
	switch r := request.(type) {
	case *runtimeapi.ExecRequest:
		answer, err := s.GetExec(r)
		return answer.GetUrl(), err
	case *runtimeapi.AttachRequest:
		answer, err := s.GetAttach(r)
		return answer.GetUrl(), err
	default:
		answer, err := s.GetPortForward(request.(*runtimeapi.PortForwardRequest))
		return answer.GetUrl(), err
	}
}

// newServer starts a streaming server, and checks at the end of the test that no goroutine is left.
func newServer(t *testing.T, s *server) *server {
	t.Helper()
	noLeaks(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener = &cuttable{Listener: listener}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	if s.Server, err = streaming.NewServer(config, s); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(s.Server)
	_ = web.Listener.Close()
	web.Listener = s.listener
	web.Start()
	t.Cleanup(web.Close)
	t.Cleanup(s.listener.cut)
	s.runtime = fakecri.New(fakecri.Config{StreamURL: s.url})
	s.streams = New(s.runtime.Client())
	s.sandbox, s.id = startContainer(t, s.runtime)
	return s
}

func startContainer(t *testing.T, r *fakecri.Runtime) (sandbox, id string) {
	t.Helper()
	r.AddImage(fakecri.Image{Name: "app"})
	c := r.Client()
	config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u"}}
	sandbox, err := c.RunPodSandbox(t.Context(), config, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err = c.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "app"}}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return sandbox, id
}

// noLeaks fails the test if it leaves goroutines. Goroutines of the server's library do not count.
func noLeaks(t *testing.T) {
	t.Helper()
	options := []goleak.Option{
		goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown"),
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown.func1"),
		goleak.IgnoreAnyFunction("k8s.io/cri-streaming/pkg/streaming/portforward.(*httpStreamHandler).monitorStreamPair"),
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Stream).waitWriteReply"), // a stream whose client left before the reply
		goleak.IgnoreAnyFunction("k8s.io/cri-streaming/pkg/streaming/remotecommand.handleResizeEvents"),
	}
	t.Cleanup(func() { goleak.VerifyNone(t, options...) })
}

// cuttable is a listener whose connections can be cut.
type cuttable struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (l *cuttable) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

func (l *cuttable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// client has the streams that a client of the node's API requested.
type client struct {
	in       io.Reader
	out, err io.WriteCloser
	tty      bool
	sizes    chan api.TermSize
}

func (c *client) Stdin() io.Reader            { return c.in }
func (c *client) Stdout() io.WriteCloser      { return c.out }
func (c *client) Stderr() io.WriteCloser      { return c.err }
func (c *client) TTY() bool                   { return c.tty }
func (c *client) Resize() <-chan api.TermSize { return c.sizes }

// sink keeps the written data.
type sink struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *sink) Close() error { return nil }

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// within returns the next value of c, or ends the test.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("no %s after 20 seconds", what)
		panic("unreachable")
	}
}
