// SPDX-License-Identifier: Apache-2.0

package node

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// hostIPsOf returns the internal IPs among the addresses, the first of each family, as a kubelet does. What is no IP
// is left out, and others are written in their one canonical form: for one that it does not take, the API
// server refuses the whole status of a pod.
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
