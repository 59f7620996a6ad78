// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const patience = 30 * time.Second

var (
	testGateway = netip.MustParseAddr("10.88.0.1")
	testRange   = netip.MustParsePrefix("10.88.0.0/22")
)

func testConfig() Config {
	return Config{
		Range: testRange, Gateway: testGateway, MTU: maxMTU,
		Nameservers: []netip.AddrPort{netip.MustParseAddrPort(internetAddress + ":53")},
		Denied:      []netip.Prefix{netip.MustParsePrefix("10.98.0.0/16")},
		Services: []Service{
			{ProtocolTCP, netip.MustParseAddr("10.98.7.7"), 443, netip.MustParseAddrPort("127.0.0.1:7")},
			{ProtocolUDP, netip.MustParseAddr("10.98.7.7"), 53, netip.MustParseAddrPort("127.0.0.1:7")},
		},
	}
}

// daemon is a network process inside this test process, with the socket that it serves.
type daemon struct {
	t       testing.TB
	socket  string
	network *Network
}

// startDaemon starts a network. Without a configuration, pods reach nothing.
func startDaemon(t testing.TB, config *Config) *daemon {
	t.Helper()
	n, err := newNetwork(10000, log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, socket: filepath.Join(t.TempDir(), "s"), network: n}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: d.socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	s := &server{network: n, users: []uint32{uint32(os.Geteuid())}, idle: idleTime}
	go func() { served <- s.serveListener(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		n.close()
	})
	if config != nil {
		if _, a := ask(t, d.socket, Request{Op: OpConfigure, Config: config}); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	return d
}

// ask makes a request. It returns the connection, which is closed with the test, and the answer.
func ask(t testing.TB, socket string, r Request, fds ...int) (*net.UnixConn, Answer) {
	t.Helper()
	c, a, stream := askStream(t, socket, r, fds...)
	if stream != nil {
		t.Fatalf("%+v: there came a stream", r)
	}
	return c, a
}

func askStream(t testing.TB, socket string, r Request, fds ...int) (*net.UnixConn, Answer, net.Conn) {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	packet, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.WriteMsgUnix(packet, unix.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
		t.Fatal(err)
	}
	answer, got, err := readPacket(c)
	if err != nil {
		t.Fatal(err)
	}
	var a Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%q: %v", answer, err)
	}
	if len(got) == 0 {
		return c, a, nil
	}
	stream, err := net.FileConn(os.NewFile(uintptr(got[0]), "stream"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return c, a, stream
}

// pair returns both ends of a virtual network link. The caller closes both.
func pair(t testing.TB) (network, sandbox int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
	}
	return fds[0], fds[1]
}

// setPatience bounds the reads of a card, so that they fail when no packet comes.
func setPatience(t *testing.T, card int) {
	t.Helper()
	if err := unix.SetsockoptTimeval(card, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}); err != nil {
		t.Fatal(err)
	}
}

// guest is a pod: a network stack like a sandbox's, on one end of the pair.
type guest struct {
	t       testing.TB
	stack   *stack.Stack
	address netip.Addr
	control *net.UnixConn // keeps the pod
	card    int           // the network's end of the pair, which a supervisor keeps
}

func (d *daemon) guest(name, address string, ports ...HostPort) *guest {
	d.t.Helper()
	network, sandbox := pair(d.t)
	d.t.Cleanup(func() { _ = unix.Close(network) })
	control, a := ask(d.t, d.socket, Request{Op: OpAttach, Pod: &Pod{name, netip.MustParseAddr(address), ports}}, network)
	if a.Error != "" {
		d.t.Fatal(a.Error)
	}
	return newGuest(d.t, address, sandbox, network, control)
}

func newGuest(t testing.TB, address string, sandbox, network int, control *net.UnixConn) *guest {
	t.Helper()
	g := &guest{t: t, address: netip.MustParseAddr(address), control: control, card: network}
	g.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
		HandleLocal:        true,
	})
	card, err := fdbased.New(&fdbased.Options{FDs: []int{sandbox}, MTU: maxMTU, PacketDispatchMode: fdbased.RecvMMsg, PreConfigured: true, IsPacketSocket: []bool{false},
		RXChecksumOffload: true, TXChecksumOffload: true})
	if err != nil {
		t.Fatal(err)
	}
	if terr := g.stack.CreateNIC(1, card); terr != nil {
		t.Fatal(terr)
	}
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFrom4(g.address.As4()).WithPrefix()}
	if terr := g.stack.AddProtocolAddress(1, own, stack.AddressProperties{}); terr != nil {
		t.Fatal(terr)
	}
	sack := tcpip.TCPSACKEnabled(true)
	g.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack)
	g.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	t.Cleanup(func() {
		g.stack.Close()
		g.stack.Wait()
		_ = unix.Close(sandbox)
	})
	return g
}

func full(address string, port int) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFrom4(netip.MustParseAddr(address).As4()), Port: uint16(port)}
}

// dial connects from the pod.
func (g *guest) dial(address string, port int) (*gonet.TCPConn, error) {
	return g.dialWithin(patience, address, port)
}

func (g *guest) dialWithin(wait time.Duration, address string, port int) (*gonet.TCPConn, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), wait)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, g.stack, full(address, port), ipv4.ProtocolNumber)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(patience))
		g.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (g *guest) mustDial(address string, port int) *gonet.TCPConn {
	g.t.Helper()
	c, err := g.dial(address, port)
	if err != nil {
		g.t.Fatalf("connect to %s:%d: %v", address, port, err)
	}
	return c
}

// listen accepts connections in the pod.
func (g *guest) listen(port int, handle func(*gonet.TCPConn)) {
	g.t.Helper()
	l, err := gonet.ListenTCP(g.stack, full(g.address.String(), port), ipv4.ProtocolNumber)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c.(*gonet.TCPConn))
			}()
		}
	}()
}

// exchange sends a datagram from the pod, and returns the answer.
func (g *guest) exchange(address string, port int, datagram string) (string, error) {
	return g.exchangeWithin(patience, address, port, datagram)
}

func (g *guest) exchangeWithin(wait time.Duration, address string, port int, datagram string) (string, error) {
	var wq waiter.Queue
	ep, terr := g.stack.NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, &wq)
	if terr != nil {
		return "", errors.New(terr.String())
	}
	defer ep.Close()
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents | waiter.EventErr)
	wq.EventRegister(&entry)
	defer wq.EventUnregister(&entry)
	if terr := ep.Connect(full(address, port)); terr != nil {
		return "", errors.New(terr.String())
	}
	if _, terr := ep.Write(payload([]byte(datagram)), tcpip.WriteOptions{}); terr != nil {
		return "", errors.New(terr.String())
	}
	select {
	case <-ready:
	case <-time.After(wait):
		return "", fmt.Errorf("no answer from %s:%d within %v", address, port, wait)
	}
	var answer bytes.Buffer
	if _, terr := ep.Read(&answer, tcpip.ReadOptions{}); terr != nil {
		return "", errors.New(terr.String())
	}
	return answer.String(), nil
}

// ping sends an echo request and waits at most wait for the answer.
func (g *guest) ping(address string, wait time.Duration) error {
	var wq waiter.Queue
	ep, terr := g.stack.NewEndpoint(icmp.ProtocolNumber4, ipv4.ProtocolNumber, &wq)
	if terr != nil {
		return errors.New(terr.String())
	}
	defer ep.Close()
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents)
	wq.EventRegister(&entry)
	defer wq.EventUnregister(&entry)
	if terr := ep.Connect(full(address, 0)); terr != nil {
		return errors.New(terr.String())
	}
	request := header.ICMPv4(make([]byte, header.ICMPv4MinimumSize+8))
	request.SetType(header.ICMPv4Echo)
	if _, terr := ep.Write(payload(request), tcpip.WriteOptions{}); terr != nil {
		return errors.New(terr.String())
	}
	select {
	case <-ready:
		return nil
	case <-time.After(wait):
		return fmt.Errorf("no answer from %s within %v", address, wait)
	}
}

type payloadReader struct{ b []byte }

func payload(b []byte) *payloadReader { return &payloadReader{b} }

func (p *payloadReader) Len() int { return len(p.b) }

func (p *payloadReader) Read(to []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.b)
	p.b = p.b[n:]
	return n, nil
}
