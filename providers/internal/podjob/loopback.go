// SPDX-License-Identifier: Apache-2.0

package podjob

import "net/netip"

// Loopback reports whether a host, without its port, is this machine. HTTP requests to it do not leave the
// machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
