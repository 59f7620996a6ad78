// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Version is the version of the protocol. A client that did not start the process asks for the version first.
const Version = 1

// The operations of a Request. After OpConfigure and OpAttach the connection stays open.
const (
	OpVersion   = "version"
	OpConfigure = "configure"
	OpAttach    = "attach"
	OpDetach    = "detach"
	OpDial      = "dial"
)

// Protocols of ports.
const (
	ProtocolTCP = "tcp"
	ProtocolUDP = "udp"
)

// Request is the first packet of a connection to the network process, as JSON.
type Request struct {
	Op string `json:"op"`
	// Config is for OpConfigure.
	Config *Config `json:"config,omitempty"`
	// Pod is for OpAttach. The packet carries one descriptor: the other end of the pod's network interface.
	Pod *Pod `json:"pod,omitempty"`
	// Keep is for OpAttach: the pod stays attached after the end of the connection, until OpDetach with its
	// Address.
	Keep bool `json:"keep,omitempty"`
	// Address and Port of a pod are for OpDial, and Address also for OpDetach.
	Address netip.Addr `json:"address,omitzero"`
	Port    uint16     `json:"port,omitempty"`
}

// Answer is the answer to a Request. The answer to OpDial carries one descriptor: a stream connected to the pod's
// port.
type Answer struct {
	Version int    `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// Refused means that the pod refused the connection, or did not answer.
	Refused bool `json:"refused,omitempty"`
}

// Config is the configuration of the network.
type Config struct {
	// Range has the addresses of pods and the gateway.
	Range   netip.Prefix `json:"range"`
	Gateway netip.Addr   `json:"gateway"`
	MTU     uint32       `json:"mtu"`
	// Nameservers answer DNS queries to port 53 of the gateway, in this order.
	Nameservers []netip.AddrPort `json:"nameservers"`
	// Denied are addresses that pods must not reach, in addition to neverReached.
	Denied   []netip.Prefix `json:"denied"`
	Services []Service      `json:"services"`
}

// Service maps a port of an address, as pods see it, to a port that the machine reaches.
type Service struct {
	Protocol string         `json:"protocol"`
	Address  netip.Addr     `json:"address"`
	Port     uint16         `json:"port"`
	Target   netip.AddrPort `json:"target"`
}

// Pod is a pod with its address.
type Pod struct {
	Name      string     `json:"name"`
	Address   netip.Addr `json:"address"`
	HostPorts []HostPort `json:"hostPorts"`
}

// HostPort is a host port that is forwarded to a port of a pod.
type HostPort struct {
	Protocol string `json:"protocol"`
	// HostIP is the address of the machine; "" means all addresses.
	HostIP   netip.Addr `json:"hostIP"`
	HostPort uint16     `json:"hostPort"`
	Port     uint16     `json:"port"`
}

// decodeRequest decodes a request, and refuses unknown fields.
func decodeRequest(packet []byte) (*Request, error) {
	d := json.NewDecoder(bytes.NewReader(packet))
	d.DisallowUnknownFields()
	var r Request
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the request: there is more than one in the packet")
	}
	return &r, r.checkRequest()
}

func (r *Request) checkRequest() error {
	switch {
	case r.Op == OpVersion:
		return nil
	case r.Op == OpConfigure && r.Config != nil:
		return r.Config.checkConfig()
	case r.Op == OpAttach && r.Pod != nil:
		return r.Pod.checkPod()
	case r.Op == OpDial && r.Address.Is4() && r.Port > 0, r.Op == OpDetach && r.Address.Is4():
		return nil
	}
	return fmt.Errorf("request %q is unknown, or has no subject", r.Op)
}

const (
	minMTU = 1280
	// maxMTU is the maximum size of an IPv4 packet that gVisor's stack supports.
	maxMTU = 65520
)

func (c *Config) checkConfig() error {
	switch {
	case !c.Range.IsValid() || !c.Range.Addr().Is4():
		return fmt.Errorf("range %s is not a range of IPv4 addresses", c.Range)
	case !c.Gateway.Is4() || !c.Range.Contains(c.Gateway):
		return fmt.Errorf("gateway %s is not in the range %s", c.Gateway, c.Range)
	case c.MTU < minMTU || c.MTU > maxMTU:
		return fmt.Errorf("mtu %d is not between %d and %d", c.MTU, minMTU, maxMTU)
	}
	for _, n := range c.Nameservers {
		if !isTarget(n) {
			return fmt.Errorf("nameserver %s is not an IPv4 address with a port", n)
		}
	}
	for _, s := range c.Services {
		switch {
		case !isProtocol(s.Protocol):
			return fmt.Errorf("service %s:%d: protocol %q is not tcp or udp", s.Address, s.Port, s.Protocol)
		case !s.Address.Is4() || s.Port == 0:
			return fmt.Errorf("service %s:%d is not an IPv4 address with a port", s.Address, s.Port)
		case !isTarget(s.Target):
			return fmt.Errorf("service %s:%d: target %s is not an IPv4 address with a port", s.Address, s.Port, s.Target)
		case c.Range.Contains(s.Target.Addr()):
			return fmt.Errorf("service %s:%d: target %s is a pod, which the machine does not reach", s.Address, s.Port, s.Target)
		}
	}
	return nil
}

func (p *Pod) checkPod() error {
	if !p.Address.Is4() {
		return fmt.Errorf("pod %s: address %s is not an IPv4 address", p.Name, p.Address)
	}
	for _, h := range p.HostPorts {
		switch {
		case !isProtocol(h.Protocol):
			return fmt.Errorf("pod %s: hostPort %d: protocol %q is not tcp or udp", p.Name, h.HostPort, h.Protocol)
		case h.HostPort == 0 || h.Port == 0:
			return fmt.Errorf("pod %s: hostPort %d: a port is missing", p.Name, h.HostPort)
		case h.HostIP.IsValid() && !h.HostIP.Is4():
			return fmt.Errorf("pod %s: hostPort %d: hostIP %s is not an IPv4 address", p.Name, h.HostPort, h.HostIP)
		}
	}
	return nil
}

func isProtocol(name string) bool { return name == ProtocolTCP || name == ProtocolUDP }

func isTarget(a netip.AddrPort) bool {
	return a.Addr().Is4() && !a.Addr().IsUnspecified() && !a.Addr().IsMulticast() && a.Port() > 0
}
