// SPDX-License-Identifier: Apache-2.0

package nodeutil

// fleetNodes is the set of nodes of a fleet at a point in time.
type fleetNodes struct {
	nodes  []*Node // in the order of their names
	byName map[string]*Node
	byHost map[string]*Node // by names and addresses that belong to a single node
}

// newFleetNodes returns the nodes. All shared nodes have the address of their process, even if it currently runs only one node.
func newFleetNodes(nodes []*Node, shared bool) *fleetNodes {
	all := &fleetNodes{nodes: nodes, byName: make(map[string]*Node, len(nodes)), byHost: hostsOf(nodes, shared)}
	for _, n := range nodes {
		all.byName[n.name] = n
	}
	return all
}

// hostsOf returns the names and addresses that belong to one node only.
func hostsOf(nodes []*Node, byName bool) map[string]*Node {
	hosts := map[string]*Node{}
	for _, n := range nodes {
		own := []string{n.name}
		if !byName {
			for _, address := range n.cfg.NodeSpec.Status.Addresses {
				own = append(own, address.Address)
			}
		}
		for _, host := range own {
			if other, taken := hosts[host]; taken && other != n {
				hosts[host] = nil
				continue
			}
			hosts[host] = n
		}
	}
	return hosts
}
