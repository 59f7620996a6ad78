// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// hostIPsOf returns the internal IPs among the addresses, the first of each family, as a kubelet does. Values that are not IPs are left
// out, and IPs are written in their canonical form. The API server refuses the whole status of a pod if it contains one invalid IP.
func hostIPsOf(addresses []corev1.NodeAddress) (ips []corev1.HostIP) {
	var seen [2]bool // one for each family
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type != corev1.NodeInternalIP || err != nil || ip.Zone() != "" {
			continue
		}
		ip = ip.Unmap()
		family := &seen[0]
		if ip.Is4() {
			family = &seen[1]
		}
		if !*family {
			*family = true
			ips = append(ips, corev1.HostIP{IP: ip.String()})
		}
	}
	return ips
}
