// SPDX-License-Identifier: Apache-2.0

package netns

import "net/netip"

// Route is a route to a network.
type Route struct {
	To netip.Prefix
	// Interface is the name of the interface of the route. It is empty for a route to nowhere.
	Interface string
}
