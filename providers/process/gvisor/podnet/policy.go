// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"net/netip"
	"slices"
)

// neverReached are prefixes that no pod can reach, except for ports that the configuration maps.
var neverReached = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),          // Linux routes it to this machine
	netip.MustParsePrefix("127.0.0.0/8"),        // loopback
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local, including the metadata services of most clouds
	netip.MustParsePrefix("100.100.100.200/32"), // metadata service of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // the host of a virtual machine in Azure
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("240.0.0.0/4"),        // class E and broadcast
}

const dnsPort = 53

// endpoint is a port of an address, as a pod sees it.
type endpoint struct {
	protocol string
	at       netip.AddrPort
}

// policy decides about the targets of pods' connections. It is immutable; a new configuration creates a new
// policy.
type policy struct {
	Config
	services map[endpoint]netip.AddrPort
}

func newPolicy(c Config) *policy {
	p := &policy{Config: c, services: map[endpoint]netip.AddrPort{}}
	p.Denied = slices.Clone(c.Denied)
	for i, d := range p.Denied {
		if d.Addr().Is4In6() && d.Bits() >= 96 {
			p.Denied[i] = netip.PrefixFrom(d.Addr().Unmap(), d.Bits()-96)
		}
	}
	for _, s := range c.Services {
		p.services[endpoint{s.Protocol, netip.AddrPortFrom(s.Address, s.Port)}] = s.Target
	}
	return p
}

// isDNS reports whether the endpoint is the DNS port of the gateway.
func (p *policy) isDNS(e endpoint) bool {
	_, mapped := p.services[e]
	return !mapped && e.at.Addr() == p.Gateway && e.at.Port() == dnsPort
}

// connectionTargets returns the target addresses for a connection of a pod; the caller uses the first that
// answers. owns reports whether an address belongs to the machine. It is not called for configured targets.
func (p *policy) connectionTargets(e endpoint, owns func(netip.Addr) (bool, error)) ([]netip.AddrPort, error) {
	if p == nil {
		return nil, fmt.Errorf("%s is refused: the network has no configuration yet", e.at)
	}
	if target, ok := p.services[e]; ok {
		return []netip.AddrPort{target}, nil
	}
	if p.isDNS(e) {
		return p.Nameservers, nil
	}
	address := e.at.Addr().Unmap()
	if !address.Is4() || e.at.Port() == 0 || p.isDenied(address) {
		return nil, fmt.Errorf("%s is denied to pods", e.at)
	}
	switch mine, err := owns(address); {
	case err != nil:
		return nil, fmt.Errorf("find out whether %s is an address of the machine: %w", address, err)
	case mine:
		return nil, fmt.Errorf("%s is denied to pods: it is an address of the machine", e.at)
	}
	return []netip.AddrPort{netip.AddrPortFrom(address, e.at.Port())}, nil
}

func (p *policy) isDenied(a netip.Addr) bool {
	has := func(r netip.Prefix) bool { return r.Contains(a) }
	return p.Range.Contains(a) || slices.ContainsFunc(neverReached, has) || slices.ContainsFunc(p.Denied, has)
}
