// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

func TestHostPorts(t *testing.T) {
	needInternet(t)
	c := testConfig()
	d := startDaemon(t, &c)
	g := d.guest("ns/a", "10.88.0.5",
		HostPort{ProtocolTCP, netip.Addr{}, 8080, 80}, HostPort{ProtocolUDP, netip.MustParseAddr(machineAddress), 8053, 53})
	g.listen(80, echo)
	at := full("10.88.0.5", 53)
	l, err := gonet.DialUDP(g.stack, &at, nil, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go reflectAll(l, func(b []byte) []byte { return b })

	for _, address := range []string{"127.0.0.1:8080", machineAddress + ":8080"} {
		conn, err := net.Dial("tcp4", address)
		if err != nil {
			t.Fatal(err)
		}
		checkEcho(t, conn.(*net.TCPConn), 1<<20)
	}
	conn, err := net.Dial("udp4", machineAddress+":8053")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := make([]byte, 10)
	_ = conn.SetDeadline(time.Now().Add(patience))
	for range 3 {
		if _, err := conn.Write([]byte("data")); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(b); err != nil || string(b[:n]) != "data" {
			t.Fatalf("%q, %v", b[:n], err)
		}
	}

	taken := Request{Op: OpAttach, Pod: &Pod{"ns/b", netip.MustParseAddr("10.88.0.6"), []HostPort{{ProtocolTCP, netip.Addr{}, 8081, 80}, {ProtocolTCP, netip.Addr{}, 8080, 80}}}}
	network, sandbox := pair(t)
	defer unix.Close(network)
	defer unix.Close(sandbox)
	if _, a := ask(t, d.socket, taken, network); !strings.Contains(a.Error, "hostPort 8080/tcp") || !strings.Contains(a.Error, "in use") {
		t.Errorf("a port that is taken: %+v", a)
	}
	// The address and the port of the pod that could not be attached are free again.
	other := d.guest("ns/b", "10.88.0.6", HostPort{ProtocolTCP, netip.Addr{}, 8081, 80})

	// Closing the connection of a pod detaches the pod.
	_ = other.control.Close()
	for end := time.Now().Add(patience); ; {
		c, err := net.Dial("tcp4", "127.0.0.1:8081")
		if err != nil {
			break
		}
		_ = c.Close()
		if time.Now().After(end) {
			t.Fatal("the port of a pod that is detached is open")
		}
	}
	d.guest("ns/c", "10.88.0.6")
}

func TestHostPortsBelow1024(t *testing.T) {
	needInternet(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may listen on ports below 1024")
	}
	p := startProcess(t, 0, testConfig())
	p.guest("ns/a", "10.88.0.5", HostPort{ProtocolTCP, netip.Addr{}, 99, 80}).listen(80, echo)
	conn, err := net.Dial("tcp4", "127.0.0.1:99")
	if err != nil {
		t.Fatal(err)
	}
	checkEcho(t, conn.(*net.TCPConn), 1000)
}
