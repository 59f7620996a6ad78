// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"io"
	"log"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/buffer"
)

// handleBytes gives a packet to the network as if it came from the card of the pod.
func handleBytes(p *pod, packet []byte) {
	view := buffer.NewViewWithData(packet)
	if len(packet) == 0 || !p.routePacket(view) {
		view.Release()
	}
}

// drain reads all waiting packets of a card and calls check for each.
func drain(card int, check func(packet []byte)) {
	b := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(card, b, unix.MSG_DONTWAIT)
		if err != nil || n == 0 {
			return
		}
		check(b[:n])
	}
}

// FuzzPacket feeds hostile packets of a pod. They reach other pods only from the pod's own address, and the
// stack answers only to that address.
func FuzzPacket(f *testing.F) {
	n, err := newNetwork(1000, log.New(io.Discard, "", 0))
	if err != nil {
		f.Fatal(err)
	}
	n.owns = func(netip.Addr) (bool, error) { return true, nil } // no connection is dialled
	c := testConfig()
	c.Services, c.Nameservers = nil, nil
	if err := n.setConfig(c); err != nil {
		f.Fatal(err)
	}
	var cards []int
	var pods []*pod
	for _, a := range []string{"10.88.0.5", "10.88.0.6"} {
		network, card := pair(f)
		p, err := n.attachPod(Pod{Name: a, Address: netip.MustParseAddr(a)}, network)
		if err != nil {
			f.Fatal(err)
		}
		pods, cards = append(pods, p), append(cards, card)
	}
	f.Cleanup(n.close)
	for _, to := range []string{"10.88.0.6", "10.88.0.1", "10.88.0.9", "8.8.8.8", "127.0.0.1", "224.0.0.1", "255.255.255.255"} {
		for _, protocol := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP, unix.IPPROTO_ICMP, unix.IPPROTO_IGMP, 253} {
			b := append(packet("10.88.0.5", to, 53), make([]byte, 31)...)
			b[3], b[9] = byte(len(b)), protocol
			if protocol == unix.IPPROTO_TCP {
				b[32], b[33] = 5<<4, 2 // SYN
			}
			f.Add(b)
			fragment := append([]byte{}, b...)
			fragment[6] = 0x20
			f.Add(fragment)
			option := append([]byte{}, b...)
			option[0], option[20], option[21], option[22] = 0x46, 131, 4, 4 // loose source route
			f.Add(option)
		}
		f.Add(packet("10.88.0.6", to, 53))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) > packetSize {
			return
		}
		handleBytes(pods[0], packet)
		drain(cards[1], func(got []byte) {
			if len(got) < 20 || address(got[12:16]) != pods[0].address || address(got[16:20]) != pods[1].address {
				t.Errorf("of % x the other pod got % x", packet, got)
			}
		})
		drain(cards[0], func(got []byte) {
			if len(got) < 20 || address(got[16:20]) != pods[0].address {
				t.Errorf("of % x the pod got % x", packet, got)
			}
		})
	})
}
