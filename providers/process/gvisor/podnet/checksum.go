// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// completeTCP sets the checksum of a TCP packet, which sandboxes leave out. UDP needs no checksum on IPv4 (RFC
// 768). Sandboxes never fragment TCP.
func completeTCP(packet []byte) {
	h := header.IPv4(packet)
	if h.Protocol() != uint8(header.TCPProtocolNumber) || h.More() || h.FragmentOffset() != 0 {
		return
	}
	start := int(h.HeaderLength())
	if start < header.IPv4MinimumSize || len(packet) < start+header.TCPMinimumSize {
		return
	}
	setChecksum(packet, packet[start:start+header.TCPMinimumSize], checksum.Checksum(packet[start+header.TCPMinimumSize:], 0))
}

// setChecksum sets the checksum in the header of a TCP segment; data is the checksum of the payload.
func setChecksum(network header.IPv4, segment header.TCP, data uint16) {
	size := network.TotalLength() - uint16(network.HeaderLength())
	segment.SetChecksum(0)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, network.SourceAddress(), network.DestinationAddress(), size)
	sum = checksum.Combine(checksum.Checksum(segment, sum), data)
	segment.SetChecksum(^sum)
}
