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

// forbidden are the addresses from which a machine gets its credentials: link-local addresses, and the metadata
// services of clouds.
var forbidden = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"),
	netip.MustParsePrefix("fd20:ce::254/128"),
}

type targetKey struct{}

// withTarget adds the pod for which connections are made.
func withTarget(ctx context.Context, t Target) context.Context {
	return context.WithValue(ctx, targetKey{}, t)
}

// dialer connects probes and hooks to their servers.
type dialer struct {
	// pods is nil if the machine itself reaches the addresses of pods.
	pods PodNetwork
}

// dialTarget connects like net.Dialer, but refuses forbidden addresses. It checks addresses after name resolution, so DNS names cannot bypass the
// check. If the machine is not in the pod network, it connects through that network. A probe reaches only addresses that its pod also reaches: a pod
// in the network of the machine reaches the machine.
func (d dialer) dialTarget(ctx context.Context, network, address string) (net.Conn, error) {
	if to, err := netip.ParseAddrPort(address); err == nil && d.pods != nil && d.pods.HasPod(to.Addr().Unmap()) {
		return d.pods.DialPod(ctx, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	}
	t, _ := ctx.Value(targetKey{}).(Target)
	return d.dialMachine(ctx, network, address, t)
}

func (d dialer) dialMachine(ctx context.Context, network, address string, t Target) (net.Conn, error) {
	check := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error { return d.checkAddress(address, t) }}
	conn, err := check.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(1) // ports in TIME_WAIT would accumulate for a minute; an error is harmless
	}
	return conn, nil
}

// checkAddress checks an IP address.
func (d dialer) checkAddress(address string, t Target) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := to.Addr().WithZone("").Unmap()
	if d.pods != nil && !isOwn(ip, t.PodIPs) && (t.Pod == nil || !t.Pod.Spec.HostNetwork) {
		if err := d.pods.CheckReachable(ip); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(forbidden, func(p netip.Prefix) bool { return p.Contains(ip) }) || isOwn(ip, t.PodIPs) {
		return nil
	}
	return fmt.Errorf("%s is a link-local or metadata address, which pods may not make the node connect to", ip)
}

// isOwn reports whether an address belongs to the pod itself.
func isOwn(ip netip.Addr, own []string) bool {
	return slices.ContainsFunc(own, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && a.WithZone("").Unmap() == ip
	})
}
