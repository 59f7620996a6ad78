// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"crypto/rand"
	"io"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
)

func echo(c *gonet.TCPConn) { _, _ = io.Copy(c, c); _ = c.CloseWrite() }

type halfCloser interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// checkEcho sends data through a connection, ends its output, and expects all data back, followed by the end.
func checkEcho(t *testing.T, c halfCloser, size int) {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data)
	go func() {
		_, _ = c.Write(data)
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("of %d bytes %d came back, %v; equal: %v", size, len(got), err, bytes.Equal(got, data))
	}
}

func TestPodsReachTheInternet(t *testing.T) {
	needInternet(t)
	c := testConfig()
	g := startDaemon(t, &c).guest("ns/a", "10.88.0.5")
	checkEcho(t, g.mustDial(internetAddress, echoPort), 5<<20)
	start := time.Now()
	if _, err := g.dial(internetAddress, 81); err == nil || time.Since(start) > time.Second {
		t.Errorf("a port without a listener: %v after %v, want it refused at once", err, time.Since(start))
	}
	for _, datagram := range []string{"x", string(make([]byte, 60000))} {
		if got, err := g.exchange(internetAddress, echoPort, datagram); err != nil || got != datagram {
			t.Errorf("datagram of %d bytes: %d bytes came back, %v", len(datagram), len(got), err)
		}
	}
}

func TestPodsReachEachOther(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	a, b := d.guest("ns/a", "10.88.0.5"), d.guest("ns/b", "10.88.0.6")
	b.listen(80, echo)
	checkEcho(t, a.mustDial("10.88.0.6", 80), 5<<20)
	if _, err := a.dial("10.88.0.6", 81); err == nil {
		t.Error("a port without a listener answered")
	}
	if _, err := a.dial("10.88.0.7", 80); err == nil {
		t.Error("an address without a pod answered")
	}
	for _, to := range []string{"10.88.0.6", testGateway.String()} {
		if err := a.ping(to, patience); err != nil {
			t.Error(err)
		}
	}
}

func TestDialIn(t *testing.T) {
	c := testConfig()
	d := startDaemon(t, &c)
	g := d.guest("ns/a", "10.88.0.5")
	g.listen(80, echo)
	_, a, stream := askStream(t, d.socket, Request{Op: OpDial, Address: g.address, Port: 80})
	if a.Error != "" || stream == nil {
		t.Fatalf("%+v, %v", a, stream)
	}
	checkEcho(t, stream.(halfCloser), 5<<20)
	if _, a := ask(t, d.socket, Request{Op: OpDial, Address: g.address, Port: 81}); !a.Refused || a.Error == "" {
		t.Errorf("a port without a listener: %+v, want it refused", a)
	}
}
