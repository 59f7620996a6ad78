// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"net/netip"
	"slices"
)

// neverReached are addresses that no pod reaches unless the configuration maps a port of them.
var neverReached = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),          // this machine, for Linux
	netip.MustParsePrefix("127.0.0.0/8"),        // loopback
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local, with the metadata services of most clouds
	netip.MustParsePrefix("100.100.100.200/32"), // metadata at Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // the machine's host at Azure
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("240.0.0.0/4"),        // class E and broadcast
}

const dnsPort = 53

// endpoint is a port of an address, as a pod sees it.
type endpoint struct {
	protocol string
	at       netip.AddrPort
}

// policy decides where connections of pods lead. It does not change; a new configuration makes a new one.
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

// isDNS reports whether a connection asks the nameservers.
func (p *policy) isDNS(e endpoint) bool {
	_, mapped := p.services[e]
	return !mapped && e.at.Addr() == p.Gateway && e.at.Port() == dnsPort
}

// connectionTargets returns the addresses for a connection of a pod; the first that answers is used. owns reports whether
// an address belongs to the machine. It is not called for addresses that the operator has named.
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
