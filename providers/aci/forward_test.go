// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// TestPortForward is a connection to the address of the pod.
func TestPortForward(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	pod := programPod("u-1", stays)
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	mine, theirs := net.Pipe()
	if err := p.PortForward(t.Context(), "ns", pod.Name, 8080, theirs); err == nil || !strings.Contains(err.Error(), "has no address") {
		t.Errorf("a pod without an address: %v", err)
	}
	if _, err := mine.Write([]byte{0}); err == nil {
		t.Error("the stream is open")
	}
	pod.Status.PodIP = "10.1.2.3" // goroutines have none
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
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	asked := ""
	p.dial = func(ctx context.Context, network, address string) (net.Conn, error) { // there is no route to what is no address
		asked = address
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}
	mine, theirs = net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- p.forward(t.Context(), pod, 8080, theirs) }()
	answer := make([]byte, 5)
	if _, err := mine.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(mine, answer); err != nil || string(answer) != "hello" {
		t.Errorf("got %q, %v", answer, err)
	}
	mine.Close()
	if err := <-ended; err != nil {
		t.Errorf("a connection that the caller closed: %v", err)
	}
	if asked != "10.1.2.3:8080" {
		t.Errorf("connected to %s", asked)
	}
	p.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
	_, theirs = net.Pipe()
	if err := p.forward(t.Context(), pod, 8080, theirs); err == nil || !strings.Contains(err.Error(), "a route from this machine") {
		t.Errorf("without a route: %v", err)
	}
}
