// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"fmt"
	"log"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
)

const (
	nicID = 1
	// bufferDefault and bufferMost are the buffer sizes of connections without a share: see
	// connection.limitBuffers.
	bufferDefault = 256 << 10
	bufferMost    = 4 << 20
	// timeWait is the duration of TIME_WAIT. It is short, because no packet is in transit for longer on one
	// machine, and such connections must not use up the memory.
	timeWait = time.Second
	// finWait is the timeout for a pod to close its side of a connection.
	finWait = 10 * time.Second
)

// Network is the network of all pods.
type Network struct {
	stack   *stack.Stack
	link    *link
	machine *machine
	log     *log.Logger
	// owns reports whether an address belongs to the machine.
	owns          func(netip.Addr) (bool, error)
	files, memory supply
	policy        atomic.Pointer[policy] // written under mu
	pods          atomic.Pointer[map[address]*pod]
	silent        silentServers

	mu sync.Mutex // for writers of policy and pods
}

// newNetwork returns a network without pods. files is the number of file descriptors for pods. The caller must
// close the network.
func newNetwork(files int, logger *log.Logger) (*Network, error) {
	m, err := openMachine()
	if err != nil {
		return nil, err
	}
	n := &Network{machine: m, owns: m.ownsAddress, log: logger}
	n.files.free, n.memory.free = files, maxMemory
	n.pods.Store(&map[address]*pod{})
	n.link = &link{network: n}
	n.link.SetMTU(maxMTU)
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4},
	})
	if err := n.setUp(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *Network) setUp() error {
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	wait, linger := tcpip.TCPTimeWaitTimeoutOption(timeWait), tcpip.TCPLingerTimeoutOption(finWait)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &wait, &linger,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: bufferDefault, Max: bufferMost},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: bufferDefault, Max: bufferMost},
	} {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("set up TCP: %s", err)
		}
	}
	if err := n.stack.CreateNIC(nicID, n.link); err != nil {
		return fmt.Errorf("make the network card of the stack: %s", err)
	}
	// The stack accepts packets to every address, and answers from it.
	if err := n.stack.SetPromiscuousMode(nicID, true); err != nil {
		return fmt.Errorf("take packets to every address: %s", err)
	}
	if err := n.stack.SetSpoofing(nicID, true); err != nil {
		return fmt.Errorf("answer from every address: %s", err)
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}})
	// The limit of half-open connections here is for all pods together; each pod has its own limit.
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(n.stack, bufferDefault, 1<<20, n.forwardTCP).HandlePacket)
	n.stack.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(n.stack, n.forwardUDP).HandlePacket)
	return nil
}

// close detaches all pods.
func (n *Network) close() {
	for _, p := range *n.pods.Load() {
		n.detachPod(p)
	}
	n.stack.Close()
	n.stack.Wait()
	n.machine.close()
}

// setConfig replaces the configuration.
func (n *Network) setConfig(c Config) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.policy.Load()
	if old == nil || old.Gateway != c.Gateway {
		if old != nil {
			n.stack.RemoveAddress(nicID, tcpip.AddrFrom4(old.Gateway.As4()))
		}
		gateway := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFrom4(c.Gateway.As4()).WithPrefix()}
		if err := n.stack.AddProtocolAddress(nicID, gateway, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("set the address of the gateway %s: %s", c.Gateway, err)
		}
	}
	n.stack.SetNICMTU(nicID, c.MTU)
	n.policy.Store(newPolicy(c))
	return nil
}

// findPod returns the pod with the address, or nil.
func (n *Network) findPod(a address) *pod { return (*n.pods.Load())[a] }

// attachPod adds a pod, and takes ownership of fd, its network interface.
func (n *Network) attachPod(spec Pod, fd int) (*pod, error) {
	card, err := openNIC(fd)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", spec.Name, err)
	}
	p := newPod(n, spec, card)
	if err := n.addPod(p); err != nil {
		card.close()
		return nil, fmt.Errorf("pod %s: %w", spec.Name, err)
	}
	if err := p.openHostPorts(spec.HostPorts); err != nil {
		n.detachPod(p)
		return nil, fmt.Errorf("pod %s: %w", spec.Name, err)
	}
	p.startTasks()
	return p, nil
}

func (n *Network) addPod(p *pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.policy.Load(); c != nil && (p.address == c.Gateway.As4() || !c.Range.Contains(netip.AddrFrom4(p.address))) {
		return fmt.Errorf("address %s is not one of the range %s", netip.AddrFrom4(p.address), c.Range)
	}
	pods := *n.pods.Load()
	if other := pods[p.address]; other != nil {
		return fmt.Errorf("address %s belongs to pod %s", netip.AddrFrom4(p.address), other.name)
	}
	if !n.files.reserveUnits(podFiles) {
		return errFiles
	}
	pods = maps.Clone(pods)
	pods[p.address] = p
	n.pods.Store(&pods)
	return nil
}

// detachPod removes a pod, and ends its connections and listeners.
func (n *Network) detachPod(p *pod) {
	n.mu.Lock()
	pods := maps.Clone(*n.pods.Load())
	if pods[p.address] != p {
		n.mu.Unlock()
		return
	}
	delete(pods, p.address)
	n.pods.Store(&pods)
	n.mu.Unlock()
	p.endTasks()
	n.files.releaseUnits(podFiles)
}

// dialPod connects from the gateway to a port of a pod.
func (n *Network) dialPod(ctx context.Context, p *pod, port uint16) (*connection, error) {
	c := n.policy.Load()
	if c == nil {
		return nil, errUnconfigured
	}
	local := tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(c.Gateway.As4())}
	return p.connectTo(ctx, local, tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(p.address), Port: port})
}
