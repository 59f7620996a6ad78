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

// link is the network interface of the stack: all pods are behind it. Like the interfaces of pods, it has no link
// header and no link address.
type link struct {
	network    *Network
	mtu        atomic.Uint32
	dispatcher stack.NetworkDispatcher // set before the first pod is attached
}

var _ stack.LinkEndpoint = (*link)(nil)

// deliverPacket passes a packet to the stack.
func (l *link) deliverPacket(pkt *stack.PacketBuffer) {
	l.dispatcher.DeliverNetworkPacket(ipv4.ProtocolNumber, pkt)
}

// WritePackets sends packets to the pods by destination address. It never fails: a packet that a pod does not
// accept is dropped.
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

// Attach implements stack.LinkEndpoint. The stack calls it when it creates the interface.
func (l *link) Attach(d stack.NetworkDispatcher) {
	if d != nil {
		l.dispatcher = d
	}
}

// IsAttached reports whether the stack has created the interface.
func (l *link) IsAttached() bool { return l.dispatcher != nil }

// MTU returns the configured MTU.
func (l *link) MTU() uint32 { return l.mtu.Load() }

// SetMTU sets the MTU.
func (l *link) SetMTU(mtu uint32) { l.mtu.Store(mtu) }

// MaxHeaderLength returns 0: packets have no link header.
func (*link) MaxHeaderLength() uint16 { return 0 }

// LinkAddress returns no address.
func (*link) LinkAddress() tcpip.LinkAddress { return "" }

// SetLinkAddress does nothing.
func (*link) SetLinkAddress(tcpip.LinkAddress) {}

// Capabilities turns off TCP and UDP checksums, because packets stay in memory. The kernel verifies checksums on
// a TUN device; there, nic computes them.
func (*link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload | stack.CapabilityTXChecksumOffload
}

// Wait does nothing.
func (*link) Wait() {}

// ARPHardwareType returns ARPHardwareNone.
func (*link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }

// AddHeader does nothing.
func (*link) AddHeader(*stack.PacketBuffer) {}

// ParseHeader returns true: there is no header to parse.
func (*link) ParseHeader(*stack.PacketBuffer) bool { return true }

// Close does nothing: Network detaches the pods.
func (*link) Close() {}

// SetOnCloseAction does nothing.
func (*link) SetOnCloseAction(func()) {}
