// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/control/client"
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/config"
)

// JoinConfig is the input of the join command: the network of a sandbox.
type JoinConfig struct {
	Address netip.Addr `json:"address"`
	Gateway netip.Addr `json:"gateway"`
	MTU     uint32     `json:"mtu"`
}

// cardName is the name of the network interface in a sandbox.
const cardName = "eth0"

// joinSandbox gives a running sandbox its network: loopback, and an interface on the socket.
func joinSandbox(control string, card *os.File, input io.Reader) error {
	var c JoinConfig
	if err := json.NewDecoder(input).Decode(&c); err != nil {
		return fmt.Errorf("read the configuration of the network card: %w", err)
	}
	if !c.Address.Is4() || !c.Gateway.Is4() || c.MTU < minMTU || c.MTU > maxMTU {
		return fmt.Errorf("the network card needs IPv4 addresses and an MTU between %d and %d: %+v", minMTU, maxMTU, c)
	}
	if tun, err := isTUN(int(card.Fd())); err != nil || tun {
		return fmt.Errorf("descriptor 3 is not a unix socket of type SOCK_SEQPACKET (%w)", err)
	}
	_ = unix.SetsockoptInt(int(card.Fd()), unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer) // a smaller buffer is only slower
	sandbox, err := client.ConnectTo(control)
	if err != nil {
		return fmt.Errorf("connect to the sandbox: %w", err)
	}
	defer sandbox.Close()
	if err := sandbox.Call("Network.CreateLinksAndRoutes", sandboxLinks(c, card), nil); err != nil {
		return fmt.Errorf("give the sandbox its network: %w", err)
	}
	return nil
}

// sandboxLinks returns the network interfaces of a sandbox. The sandbox neither computes nor verifies TCP and UDP
// checksums, because packets stay in memory. GRO is off, because it is slower here by orders of magnitude.
func sandboxLinks(c JoinConfig, card *os.File) *boot.CreateLinksAndRoutesArgs {
	return &boot.CreateLinksAndRoutesArgs{
		FilePayload:   urpc.FilePayload{Files: []*os.File{card}},
		LoopbackLinks: []boot.LoopbackLink{boot.DefaultLoopbackLink},
		FDBasedLinks: []boot.FDBasedLink{{
			Name: cardName, MTU: int(c.MTU), NumChannels: 1, ProcessorsPerChannel: 1, QDisc: config.QDiscNone, PreConfigured: true, IsPacket: []bool{false},
			RXChecksumOffload: true, TXChecksumOffload: true,
			Addresses: []boot.IPWithPrefix{{Address: c.Address.AsSlice(), PrefixLen: 32}},
			Routes:    []boot.Route{{Destination: net.IPNet{IP: c.Gateway.AsSlice(), Mask: net.CIDRMask(32, 32)}}},
		}},
		Defaultv4Gateway: boot.DefaultRoute{
			Name:  cardName,
			Route: boot.Route{Destination: net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, Gateway: c.Gateway.AsSlice()},
		},
	}
}
