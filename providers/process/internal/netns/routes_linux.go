// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Routes returns the IPv4 routes in the main table of the caller's namespace.
func Routes() ([]Route, error) {
	list, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // after an interrupted dump, routes that have just changed may be missing
		return nil, fmt.Errorf("read the routes of the machine: %w", err)
	}
	var routes []Route
	for i := range list {
		if list[i].Dst == nil {
			continue // default route
		}
		to, ok := netip.AddrFromSlice(list[i].Dst.IP.To4())
		if !ok {
			continue
		}
		bits, _ := list[i].Dst.Mask.Size()
		index := list[i].LinkIndex
		if index == 0 && len(list[i].MultiPath) > 0 {
			index = list[i].MultiPath[0].LinkIndex
		}
		name := "none"
		if link, err := net.InterfaceByIndex(index); err == nil {
			name = link.Name
		}
		routes = append(routes, Route{netip.PrefixFrom(to, bits), name})
	}
	return routes, nil
}
