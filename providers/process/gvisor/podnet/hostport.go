// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	backlog = 1024
	// acceptPause is the pause of a listener after an error, such as too many open files.
	acceptPause = time.Second / 4
)

// openHostPorts opens all host ports of the pod, or none.
func (p *pod) openHostPorts(ports []HostPort) error {
	for _, h := range ports {
		open := p.listenTCP
		if h.Protocol == ProtocolUDP {
			open = p.listenUDP
		}
		if err := open(h); err != nil {
			return fmt.Errorf("hostPort %d/%s: %w", h.HostPort, h.Protocol, err)
		}
	}
	return nil
}

func (h HostPort) listenAddress() netip.AddrPort {
	if !h.HostIP.IsValid() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), h.HostPort)
	}
	return netip.AddrPortFrom(h.HostIP, h.HostPort)
}

func (p *pod) listenTCP(h HostPort) error {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l, err := config.Listen(p.ctx, "tcp4", h.listenAddress().String())
	if err != nil {
		return err
	}
	p.keepListener(l)
	// Set the backlog here: in this process, Go cannot read the machine's limit.
	if raw, err := l.(*net.TCPListener).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Listen(int(fd), backlog) })
	}
	p.spawnTask(func() { p.acceptAll(l.(*net.TCPListener), h.Port) })
	return nil
}

func (p *pod) keepListener(l interface{ Close() error }) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, l)
}

// acceptAll forwards connections of a listener to the port of the pod, until the listener is closed.
func (p *pod) acceptAll(l *net.TCPListener, port uint16) {
	for {
		in, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			select {
			case <-time.After(acceptPause):
			case <-p.ctx.Done():
			}
			continue
		}
		if !p.halfOpen.takeOne() {
			_ = in.Close()
			continue
		}
		if !p.spawnTask(func() { p.joinIn(in, port) }) {
			_ = in.Close()
		}
	}
}

func (p *pod) joinIn(in *net.TCPConn, port uint16) {
	ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
	c, err := p.network.dialPod(ctx, p, port)
	cancel()
	p.halfOpen.returnOne()
	if err != nil {
		_ = in.SetLinger(0) // the client gets a reset, as from a refusing pod
		_ = in.Close()
		return
	}
	c.joinStreams(in)
}

func (p *pod) listenUDP(h HostPort) error {
	l, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(h.listenAddress()))
	if err != nil {
		return err
	}
	p.keepListener(l)
	clients := &clients{pod: p, socket: l, port: h.Port, flows: map[netip.AddrPort]*flow{}}
	p.spawnTask(clients.readDatagrams)
	return nil
}

// clients has the flows of a UDP host port by client.
type clients struct {
	pod    *pod
	socket *net.UDPConn
	port   uint16
	mu     sync.Mutex
	flows  map[netip.AddrPort]*flow // guarded by mu
}

func (c *clients) readDatagrams() {
	b := make([]byte, 64<<10)
	for {
		n, client, err := c.socket.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error is about an earlier datagram
		}
		if f := c.flowOf(client); f != nil {
			f.deliverDatagram(b[:n])
		}
	}
}

// flowOf returns the flow of a client. It makes a new flow if the client has none, and returns nil if the client
// cannot have one.
func (c *clients) flowOf(client netip.AddrPort) *flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flows[client]; f != nil {
		return f
	}
	config := c.pod.network.policy.Load()
	if config == nil {
		return nil
	}
	s, err := c.pod.takeSlot(&c.pod.flows, minShare, flowBuffer)
	if err != nil {
		return nil
	}
	f := &flow{slot: s, wq: &waiter.Queue{}, idle: flowIdle}
	f.out = func(datagram []byte) { _, _ = c.socket.WriteToUDPAddrPort(datagram, client) }
	f.closeOut = func() { c.forgetClient(client) }
	ep, terr := c.pod.network.stack.NewEndpoint(udp.ProtocolNumber, ipv4.ProtocolNumber, f.wq)
	if terr == nil {
		f.ep = ep
		if terr = ep.Bind(tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(config.Gateway.As4())}); terr == nil {
			terr = ep.Connect(tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(c.pod.address), Port: c.port})
		}
		if terr != nil {
			ep.Close()
		}
	}
	if terr != nil {
		s.releaseSlot()
		return nil
	}
	c.flows[client] = f
	if !c.pod.spawnTask(f.runFlow) {
		ep.Close()
		s.releaseSlot()
		delete(c.flows, client)
		return nil
	}
	return f
}

func (c *clients) forgetClient(client netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flows, client)
}
