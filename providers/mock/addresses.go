// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"net/netip"
)

// addresses hands out the addresses of a network, each to one pod at a time.
// It is not safe for concurrent use.
type addresses struct {
	prefix netip.Prefix
	next   netip.Addr
	used   map[netip.Addr]bool
}

func newAddresses(prefix netip.Prefix) *addresses {
	return &addresses{prefix: prefix, next: prefix.Addr().Next(), used: map[netip.Addr]bool{}}
}

// takeAddress returns a free address. It goes round the network, so that an address is not used again soon.
func (a *addresses) takeAddress() (netip.Addr, error) {
	for first := a.next; ; {
		addr := a.next
		a.next = a.next.Next()
		if !a.prefix.Contains(a.next) {
			a.next = a.prefix.Addr().Next()
		}
		if a.prefix.Contains(addr) && !a.used[addr] {
			a.used[addr] = true
			return addr, nil
		}
		if a.next == first {
			return netip.Addr{}, fmt.Errorf("no free pod address in %s: %d are in use", a.prefix, len(a.used))
		}
	}
}

// claimAddress takes the address in text and reports whether the address was free.
func (a *addresses) claimAddress(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil || !a.prefix.Contains(addr) || a.used[addr] {
		return netip.Addr{}, false
	}
	a.used[addr] = true
	return addr, true
}

// releaseAddress gives an address back.
func (a *addresses) releaseAddress(addr netip.Addr) { delete(a.used, addr) }
