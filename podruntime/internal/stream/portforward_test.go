// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// forwarded starts forwarding and returns the client's end.
func forwarded(ctx context.Context, s *Streams, pod Target, port int32) (net.Conn, <-chan error) {
	near, far := net.Pipe()
	result := make(chan error, 1)
	go func() { result <- s.PortForward(ctx, pod, port, far) }()
	return near, result
}

func TestPortForward(t *testing.T) {
	s := newServer(t, &server{})
	s.port = func(_ context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error {
		question := make([]byte, 4)
		if _, err := io.ReadFull(stream, question); err != nil {
			return err
		}
		_, err := fmt.Fprintf(stream, "%s from %d of %t", question, port, sandbox == s.sandbox)
		return err
	}
	conn, result := forwarded(t.Context(), s.streams, Target{SandboxID: s.sandbox}, 8080)
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn) // ends after the pod has closed the connection
	if want := "ping from 8080 of true"; string(got) != want || err != nil {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if err := within(t, result, "end"); err != nil {
		t.Error(err)
	}
}

// halves is a connection whose two directions end separately, as in the node's API.
type halves struct {
	io.Reader
	*sink
}

func TestPortForwardTellsThePodThatTheClientHasSentAll(t *testing.T) {
	s := newServer(t, &server{port: func(_ context.Context, _ string, _ int32, stream io.ReadWriteCloser) error {
		all, err := io.ReadAll(stream)
		fmt.Fprintf(stream, "%d bytes", len(all))
		return err
	}})
	out := &sink{}
	if err := s.streams.PortForward(t.Context(), Target{SandboxID: s.sandbox}, 80, halves{strings.NewReader("12345"), out}); err != nil {
		t.Error(err)
	}
	if out.String() != "5 bytes" {
		t.Errorf("answer %q", out)
	}
}

func TestPortForwardError(t *testing.T) {
	s := newServer(t, &server{port: func(context.Context, string, int32, io.ReadWriteCloser) error {
		return errors.New("connection refused")
	}})
	_, result := forwarded(t.Context(), s.streams, Target{SandboxID: s.sandbox}, 81)
	if err := within(t, result, "end"); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

func TestPortForwardEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	s := newServer(t, &server{port: func(_ context.Context, _ string, _ int32, stream io.ReadWriteCloser) error {
		close(started)
		_, err := io.Copy(io.Discard, stream)
		return err
	}})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	_, result := forwarded(ctx, s.streams, Target{SandboxID: s.sandbox}, 82)
	within(t, started, "connection")
	leave()
	at := time.Now()
	if err := within(t, result, "end"); !errors.Is(err, context.Canceled) || time.Since(at) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(at))
	}
}

// TestPortForwardDials: for a runtime without port-forward, Streams dials the pod itself.
func TestPortForwardDials(t *testing.T) {
	noLeaks(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(c)
			fmt.Fprintf(c, "%d bytes", len(all))
			c.Close()
		}
	}()
	port := int32(l.Addr().(*net.TCPAddr).Port)
	s := New(fakecri.New(fakecri.Config{}).Client())
	for name, pod := range map[string]Target{"the pod": {IP: "127.0.0.1"}, "the machine": {HostNetwork: true, IP: "192.0.2.1"}} {
		out := &sink{}
		if err := s.PortForward(t.Context(), pod, port, halves{strings.NewReader("123"), out}); err != nil || out.String() != "3 bytes" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	if err := s.PortForward(t.Context(), Target{}, port, nil); err == nil {
		t.Error("a pod without an address was dialled")
	}
}
