// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// link is the network card of the stack: all pods are behind it. Like the cards of pods, it has no header and no
// address.
type link struct {
	network    *Network
	mtu        atomic.Uint32
	dispatcher stack.NetworkDispatcher // set before the first pod is attached
}

var _ stack.LinkEndpoint = (*link)(nil)

// deliverPacket gives a packet to the stack.
func (l *link) deliverPacket(pkt *stack.PacketBuffer) {
	l.dispatcher.DeliverNetworkPacket(ipv4.ProtocolNumber, pkt)
}

// WritePackets sends packets to the pods with their addresses. It never fails: a packet that a pod does not
// accept is lost, as on any network.
func (l *link) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		h := header.IPv4(pkt.NetworkHeader().Slice())
		if len(h) < header.IPv4MinimumSize {
			continue
		}
		to := h.DestinationAddress().As4()
		if p := l.network.findPod(to); p != nil {
			p.nic.sendPacket(pkt)
		}
	}
	return pkts.Len(), nil
}

// Attach is called when the stack makes its card.
func (l *link) Attach(d stack.NetworkDispatcher) {
	if d != nil {
		l.dispatcher = d
	}
}

// IsAttached reports whether the stack has its card.
func (l *link) IsAttached() bool { return l.dispatcher != nil }

// MTU returns the MTU of the configuration.
func (l *link) MTU() uint32 { return l.mtu.Load() }

// SetMTU sets the size of the largest packet.
func (l *link) SetMTU(mtu uint32) { l.mtu.Store(mtu) }

// MaxHeaderLength is 0: packets have no header of the link.
func (*link) MaxHeaderLength() uint16 { return 0 }

// LinkAddress is empty.
func (*link) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress does nothing.
func (*link) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities turns off the checksums of TCP and UDP, because packets come and go by memory. The kernel
// compares the checksums of a TUN device; the device's nic computes them.
func (*link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload | stack.CapabilityTXChecksumOffload
}

// Wait has nothing to wait for.
func (*link) Wait() {}

// ARPHardwareType returns that there is no ARP.
func (*link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader adds none.
func (*link) AddHeader(*stack.PacketBuffer) {}

// ParseHeader finds none.
func (*link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close has nothing to close: pods are detached by themselves.
func (*link) Close() {}

// SetOnCloseAction does nothing.
func (*link) SetOnCloseAction(func()) {}
