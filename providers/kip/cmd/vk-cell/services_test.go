// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// enterNetwork gives the test its own network namespace, with a route to cluster IPs.
func enterNetwork(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", "192.0.2.1/32", "dev", "lo"}, {"route", "add", "default", "dev", "lo"}} {
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Skipf("ip %v: %v: %s", args, err, out)
		}
	}
	c, err := nftables.New()
	if err == nil {
		_, err = c.ListTables()
	}
	if err != nil {
		t.Skipf("the kernel has no nftables: %v", err)
	}
}

// serveName starts a server for TCP and UDP whose answer is a name.
func serveName(t *testing.T, name string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "192.0.2.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	u, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{}, 2)
	go func() {
		defer func() { ended <- struct{}{} }()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name)
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	go func() {
		defer func() { ended <- struct{}{} }()
		for {
			_, from, err := u.ReadFromUDPAddrPort(make([]byte, 10))
			if err != nil {
				return
			}
			_, _ = u.WriteToUDPAddrPort([]byte(name), from)
		}
	}()
	t.Cleanup(func() {
		_, _ = l.Close(), u.Close()
		<-ended
		<-ended
	})
	return at
}

// ask returns the names of the servers behind an address, for some connections.
func ask(t *testing.T, network, address string, times int) map[string]int {
	t.Helper()
	names := map[string]int{}
	for range times {
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if network == "udp4" {
			_, _ = io.WriteString(conn, "?")
		}
		answer := make([]byte, 10)
		n, err := conn.Read(answer)
		if err != nil {
			t.Fatalf("%s %s: %v", network, address, err)
		}
		names[string(answer[:n])]++
		_ = conn.Close()
	}
	return names
}

// dialEcho serves one connection with an echo, lets begin know the address, and connects to service. The returned function sends a text and expects
// the same text.
func dialEcho(t *testing.T, begin func(netip.AddrPort), service string) (net.Conn, func(string)) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	begin(l.Addr().(*net.TCPAddr).AddrPort())
	conn, err := net.Dial("tcp4", service)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = conn.Close(), l.Close()
		<-ended
	})
	return conn, func(when string) {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		answer := make([]byte, 1)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Errorf("%s: %v", when, err)
		} else if _, err := io.ReadFull(conn, answer); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
}

// TestServiceLeadsToItsEndpoints: the kernel translates a cluster IP to one of the endpoints at random, follows each change, and refuses connections to a
// port without an endpoint. A sticky port has one endpoint.
func TestServiceLeadsToItsEndpoints(t *testing.T) {
	enterNetwork(t)
	a, b := serveName(t, "a"), serveName(t, "b")
	port := func(service string, protocol corev1.Protocol, endpoints ...netip.AddrPort) cell.ServicePort {
		return cell.ServicePort{Service: netip.MustParseAddrPort(service), Protocol: protocol, Endpoints: endpoints}
	}
	set := serviceSetter("machine")
	sticky := port("10.96.0.11:80", corev1.ProtocolTCP, a, b)
	sticky.Sticky = true
	s := cell.Services{Ports: []cell.ServicePort{
		port("10.96.0.10:80", corev1.ProtocolTCP, a, b), port("10.96.0.10:53", corev1.ProtocolUDP, a, b), sticky, port("10.96.0.12:80", corev1.ProtocolTCP),
		port("10.96.0.13:80", corev1.ProtocolTCP, a), port("10.96.0.13:80", corev1.ProtocolTCP, b), // a duplicate, which counts once
	}}
	if err := set(s); err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]string{{"tcp4", "10.96.0.10:80"}, {"udp4", "10.96.0.10:53"}} {
		if got := ask(t, at[0], at[1], 40); got["a"] == 0 || got["b"] == 0 {
			t.Errorf("%v: got %v, want both", at, got)
		}
	}
	for address, n := range map[string]int{"10.96.0.11:80": 20, "10.96.0.13:80": 3} {
		if got := ask(t, "tcp4", address, n); len(got) != 1 {
			t.Errorf("%s: got %v, want one server", address, got)
		}
	}
	if _, err := net.Dial("tcp4", "10.96.0.12:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without an endpoint: %v", err)
	}
	running, echo := dialEcho(t, func(at netip.AddrPort) {
		s.Ports = append(s.Ports, port("10.96.0.14:80", corev1.ProtocolTCP, at))
		if err := set(s); err != nil {
			t.Fatal(err)
		}
	}, "10.96.0.14:80")
	echo("with an endpoint")
	s.Ports[len(s.Ports)-1].Endpoints = nil
	if err := set(s); err != nil {
		t.Fatal(err)
	}
	echo("after its endpoint has become not ready")
	if _, err := net.Dial("tcp4", "10.96.0.14:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection without an endpoint: %v", err)
	}
	_ = running.Close()
	s.Ports[0].Endpoints, s.Ports[1].Endpoints, s.Ports[2].Endpoints, s.Ports[3].Endpoints = []netip.AddrPort{b}, nil, nil, []netip.AddrPort{b}
	if err := set(s); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.96.0.10:80", "10.96.0.12:80"} {
		if got := ask(t, "tcp4", address, 10); got["b"] != 10 {
			t.Errorf("%s after the change: got %v", address, got)
		}
	}
	if _, err := net.Dial("tcp4", "10.96.0.11:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the last endpoint has gone: %v", err)
	}
}

// TestManyServicesAreOneTransaction: the Services of a large cluster fit into one transaction.
func TestManyServicesAreOneTransaction(t *testing.T) {
	enterNetwork(t)
	var s cell.Services
	for i := range 5000 {
		p := cell.ServicePort{Service: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}), 80), Protocol: corev1.ProtocolTCP}
		for j := range i % 5 {
			p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(j), byte(i >> 8), byte(i)}), 8080))
		}
		s.Ports = append(s.Ports, p)
	}
	for range 2 {
		if err := serviceSetter("machine")(s); err != nil {
			t.Fatal(err)
		}
	}
}
