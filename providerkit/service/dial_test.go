// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// reachable returns a Dial that connects every address to the same server. The server reads its whole input and sends it
// back.
func reachable(t *testing.T, asked *string) Dial {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			got, _ := io.ReadAll(c)
			_, _ = c.Write(got)
			c.Close()
		}
	}()
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		*asked = address
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}
}

// halves is a stream whose input ends, and which keeps its output.
type halves struct {
	io.Reader
	out    strings.Builder
	closed bool
}

func (h *halves) Write(data []byte) (int, error) { return h.out.Write(data) }

func (h *halves) Close() error { h.closed = true; return nil }

func addressed(ip string) *corev1.Pod { return &corev1.Pod{Status: corev1.PodStatus{PodIP: ip}} }

// TestForwardByDialPassesTheEndOfTheInputOn: the pod sees the end of the input, and its whole answer comes back.
func TestForwardByDialPassesTheEndOfTheInputOn(t *testing.T) {
	for ip, want := range map[string]string{"10.1.2.3": "10.1.2.3:8080", "fd00::1": "[fd00::1]:8080"} {
		var asked string
		stream := &halves{Reader: strings.NewReader("hello")}
		err := ForwardByDial(t.Context(), reachable(t, &asked), addressed(ip), 8080, stream)
		if err != nil || stream.out.String() != "hello" || !stream.closed || asked != want {
			t.Errorf("got %q from %s with %v, closed %t", stream.out.String(), asked, err, stream.closed)
		}
	}
}

// TestForwardByDialEndsWithItsCaller: ForwardByDial returns no error if the caller closes its
// stream or cancels the context.
func TestForwardByDialEndsWithItsCaller(t *testing.T) {
	var asked string
	dial := reachable(t, &asked)
	mine, theirs := net.Pipe()
	mine.Close()
	if err := ForwardByDial(t.Context(), dial, addressed("10.1.2.3"), 1, theirs); err != nil {
		t.Errorf("a stream that is closed: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	mine, theirs = net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- ForwardByDial(ctx, dial, addressed("10.1.2.3"), 1, theirs) }()
	if _, err := mine.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("a request that is cancelled: %v", err)
	}
}

// TestForwardByDialSaysWhyNot: without an address or a connection, the stream is closed and the error gives the
// reason.
func TestForwardByDialSaysWhyNot(t *testing.T) {
	stream := &halves{Reader: strings.NewReader("")}
	if err := ForwardByDial(t.Context(), nil, addressed(""), 1, stream); !errdefs.IsInvalidInput(err) || !stream.closed {
		t.Errorf("no address: %v, closed %t", err, stream.closed)
	}
	away := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
	stream = &halves{Reader: strings.NewReader("")}
	err := ForwardByDial(t.Context(), away, addressed("10.1.2.3"), 1, stream)
	if err == nil || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "10.1.2.3:1: no route to host") || !stream.closed {
		t.Errorf("no route: %v, closed %t", err, stream.closed)
	}
}
