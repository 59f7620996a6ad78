// SPDX-License-Identifier: Apache-2.0

package netns

import "net/netip"

// Route is a route to a network.
type Route struct {
	To netip.Prefix
	// Interface is the name of the route's interface. It is empty for a blackhole route.
	Interface string
}
