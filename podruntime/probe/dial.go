// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// forbidden are the addresses of which a machine gets its credentials: link-local ones, and those of the metadata
// services of clouds.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
}

type ownKey struct{}

// withOwn says which addresses are those of the pod itself.
func withOwn(ctx context.Context, podIPs []string) context.Context {
	return context.WithValue(ctx, ownKey{}, podIPs)
}

// dial connects as net.Dialer does, but to no forbidden address. It is checked after names are resolved, so
// that no name leads there.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	own, _ := ctx.Value(ownKey{}).([]string)
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return allowed(address, own) }}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(1) // a port that waits for a minute to be used again would add up; without it all works
	}
	return conn, nil
}

// allowed is asked with an address that is no name.
func allowed(address string, own []string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := to.Addr().WithZone("").Unmap()
	if !slices.ContainsFunc(forbidden, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	if slices.ContainsFunc(own, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && a.WithZone("").Unmap() == ip
	}) {
		return nil
	}
	return fmt.Errorf("%s is a link-local or metadata address, which pods may not make the node connect to", ip)
}
