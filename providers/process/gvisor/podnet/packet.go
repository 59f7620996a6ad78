// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// address is an IPv4 address in network byte order.
type address [4]byte

// routePacket routes a packet from the pod. It passes a packet for another pod on unchanged, and a packet for the
// stack to the stack. It drops all others.
func (p *pod) routePacket(view *buffer.View) (taken bool) {
	packet := view.AsSlice()
	to, ok := p.packetDestination(packet)
	if !ok {
		return false
	}
	if other := p.network.findPod(to); other != nil {
		return other.nic.passPacket(p, view)
	}
	if !p.forStack(packet, to) {
		return false
	}
	room := view
	if taken = len(packet) > packetSize/4; !taken {
		room = buffer.NewViewWithData(packet)
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(room)})
	p.network.link.deliverPacket(pkt)
	pkt.DecRef()
	return taken
}

// packetDestination returns the destination of a packet from the pod. ok is false unless it is an IPv4 packet
// with the pod's source address.
func (p *pod) packetDestination(packet []byte) (to address, ok bool) {
	if len(packet) < header.IPv4MinimumSize || packet[0]>>4 != 4 || int(binary.BigEndian.Uint16(packet[2:])) != len(packet) ||
		address(packet[12:16]) != p.address {
		return to, false
	}
	to = address(packet[16:20])
	return to, to != p.address
}

// forStack reports whether the packet goes to the stack. The stack gets TCP and UDP packets to unicast addresses,
// pings of the gateway, and ICMP errors. It gets no packets with IP options, and no fragments, because reassembly
// memory is shared by all pods.
func (p *pod) forStack(packet []byte, to address) bool {
	h := header.IPv4(packet)
	if h.HeaderLength() != header.IPv4MinimumSize || h.More() || h.FragmentOffset() != 0 || to[0] >= 224 {
		return false
	}
	switch h.Protocol() {
	case uint8(header.TCPProtocolNumber), uint8(header.UDPProtocolNumber):
		return true
	case uint8(header.ICMPv4ProtocolNumber):
		config := p.network.policy.Load()
		if config == nil || to != config.Gateway.As4() || len(packet) < header.IPv4MinimumSize+header.ICMPv4MinimumSize {
			return false
		}
		switch message := header.ICMPv4(packet[header.IPv4MinimumSize:]); message.Type() {
		case header.ICMPv4Echo:
			return true
		case header.ICMPv4DstUnreachable:
			// Accept only errors about packets from the gateway to this pod. Other errors could end or slow down
			// connections of another pod.
			about := message.Payload()
			return len(about) >= header.IPv4MinimumSize && address(about[12:16]) == to && address(about[16:20]) == p.address
		}
	}
	return false
}
