// SPDX-License-Identifier: Apache-2.0

package podjob

import "net/netip"

// Loopback tells whether a host, without its port, is this machine: what goes there by http leaves it not.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
