// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// forwardUDP handles the first packet of each flow from a pod. Other packets of the pod wait for it. If it
// returns false, the stack answers that the port is unreachable.
func (n *Network) forwardUDP(r *udp.ForwarderRequest) (handled bool) {
	id := r.ID()
	p := n.findPod(id.RemoteAddress.As4())
	if p == nil {
		return true
	}
	to := endpoint{ProtocolUDP, netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)}
	config := n.policy.Load()
	targets, err := config.connectionTargets(to, n.owns)
	if err != nil || len(targets) == 0 {
		return false
	}
	s, err := p.takeSlot(&p.flows, minShare, flowBuffer)
	if err != nil {
		return true // dropped
	}
	f := &flow{slot: s, wq: &waiter.Queue{}, idle: flowIdle, closeOut: func() {}}
	var machine *net.UDPConn
	if config.isDNS(to) {
		f.idle, f.asks = dnsIdle, true
		f.out = func(query []byte) { f.startQuery(targets, query) }
	} else if machine, err = f.dialOut(targets[0]); err != nil {
		s.releaseSlot()
		return false
	}
	ep, terr := r.CreateEndpoint(f.wq)
	if terr != nil {
		f.closeOut()
		s.releaseSlot()
		return true // another packet has created the flow
	}
	f.ep = ep
	if !p.spawnTask(f.runFlow) {
		f.close()
		f.closeOut()
		s.releaseSlot()
	} else if machine != nil {
		p.spawnTask(func() { f.receiveDatagrams(machine) })
	}
	return true
}

// dialOut opens the outgoing socket of a flow.
func (f *flow) dialOut(to netip.AddrPort) (*net.UDPConn, error) {
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	f.out = func(datagram []byte) { _, _ = c.Write(datagram) }
	f.closeOut = func() { _ = c.Close() }
	return c, nil
}

// receiveDatagrams forwards datagrams to the pod until the socket is closed, or the other side has no listener.
// It holds no buffer while it waits.
func (f *flow) receiveDatagrams(from *net.UDPConn) {
	defer f.close()
	raw, err := from.SyscallConn()
	if err != nil {
		return
	}
	var readErr error
	read := func(fd uintptr) bool {
		b := datagramBuffers.Get().(*[]byte)
		defer datagramBuffers.Put(b)
		var n int
		for readErr = unix.EINTR; readErr == unix.EINTR; {
			n, readErr = unix.Read(int(fd), *b)
		}
		if readErr == nil {
			f.deliverDatagram((*b)[:n])
		}
		return readErr != unix.EAGAIN
	}
	for readErr == nil && err == nil {
		err = raw.Read(read)
	}
}
