// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
)

// networkFile stores the pod address range of this node, which must not change while pods use it.
const networkFile = "network.json"

type networkRecord struct{ Range string }

// podRange returns the configured range, or else the stored range, or else a range chosen by the name of the
// node. A stored range that overlaps a network of the machine is kept while pods use it: a network that the
// machine joins later must not end running pods.
func (r *Runtime) podRange(ctx context.Context, networks []machineNetwork) (netip.Prefix, error) {
	path := filepath.Join(r.config.StateDir, networkFile)
	var kept networkRecord
	_ = durable.ReadJSON(path, &kept) // without a readable file, a new range is chosen
	wanted := r.config.PodCIDR
	if prefix, err := checkRange(kept.Range); err == nil && (wanted == "" || wanted == kept.Range) {
		overlap := overlapOf(prefix, networks)
		if overlap == nil {
			return prefix, nil
		}
		if r.hasPods() {
			log.G(ctx).WithError(overlap).Warn("process provider: the addresses of pods are kept, since there are pods")
			return prefix, nil
		}
	}
	if wanted == "" {
		chosen, err := chooseRange(r.nodeName, networks)
		if err != nil {
			return chosen, err
		}
		wanted = chosen.String()
	}
	prefix, err := checkRange(wanted)
	if err == nil {
		err = overlapOf(prefix, networks)
	}
	if err == nil && wanted != kept.Range {
		err = durable.WriteJSON(path, networkRecord{wanted})
	}
	return prefix, err
}

// hasPods reports whether an earlier daemon has left pods.
func (r *Runtime) hasPods() bool {
	entries, err := os.ReadDir(filepath.Join(r.config.StateDir, "sandboxes"))
	return err != nil || len(entries) > 0
}

// checkRange parses a range, and refuses a range without room for a pod.
func checkRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix || prefix.Bits() > 29 || prefix.Bits() < 8 {
		return prefix, errors.Join(fmt.Errorf("%q: want IPv4 addresses such as 10.88.0.0/22, of 8 to 29 bits", text), err)
	}
	return prefix, nil
}

// rangesOfNodes are the pools for chooseRange: the first, or the second if the machine uses all of the first.
var rangesOfNodes = []netip.Prefix{netip.MustParsePrefix("10.88.0.0/13"), netip.MustParsePrefix("172.24.0.0/13")}

// bitsOfRange is the prefix length of a node's range, with room for 1,021 pods.
const bitsOfRange = 22

// chooseRange chooses a range by a hash of the node name, so the nodes of a cluster usually get different ranges.
// It avoids ranges that the machine uses. If wide routes, such as a route to a company network, cover all ranges,
// it chooses a range inside such a route.
func chooseRange(node string, networks []machineNetwork) (netip.Prefix, error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // Write never fails
	unreached := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(networks, func(n machineNetwork) bool { return n.prefix.Overlaps(p) })
	}
	allowed := func(p netip.Prefix) bool { return overlapOf(p, networks) == nil }
	for _, free := range []func(netip.Prefix) bool{unreached, allowed} {
		for _, all := range rangesOfNodes {
			count := uint32(1) << (bitsOfRange - all.Bits())
			for i := range count {
				base := all.Addr().As4()
				number := (hash.Sum32() + i) % count << (32 - bitsOfRange)
				base[1], base[2] = base[1]|byte(number>>16), byte(number>>8)
				if prefix := netip.PrefixFrom(netip.AddrFrom4(base), bitsOfRange); free(prefix) {
					return prefix, nil
				}
			}
		}
	}
	return netip.Prefix{}, fmt.Errorf("the machine uses every range in %v: set podCIDR", rangesOfNodes)
}

// machineNetwork is a network that the machine reaches through an interface.
type machineNetwork struct {
	prefix netip.Prefix
	// link is the interface.
	link string
	// routed is true if the machine has a route to the network, but no address in it.
	routed bool
}

// overlapOf returns an error if a pod range overlaps a network of the machine. A route with a shorter prefix does
// not count, because the longer prefix has precedence.
func overlapOf(pods netip.Prefix, networks []machineNetwork) error {
	for _, n := range networks {
		if n.prefix.Overlaps(pods) && (!n.routed || n.prefix.Bits() >= pods.Bits()) {
			return fmt.Errorf("%s overlaps the network %s of the machine's interface %s, and pods would not reach that network: set podCIDR to addresses that nothing else has, or leave it out",
				pods, n.prefix, n.link)
		}
	}
	return nil
}

// machineNetworks returns the networks of the machine and the networks that it has routes to, except default
// routes and routes to half of all addresses. If they cannot be read, the pod range may overlap one of them, and
// pods cannot reach that network.
func machineNetworks(ctx context.Context) (all []machineNetwork) {
	interfaces, err := net.Interfaces()
	for _, i := range interfaces {
		addresses, failed := i.Addrs()
		err = errors.Join(err, failed)
		for _, a := range addresses {
			if prefix, notOne := netip.ParsePrefix(a.String()); notOne == nil && prefix.Addr().Is4() {
				all = append(all, machineNetwork{prefix: prefix.Masked(), link: i.Name})
			}
		}
	}
	routes, failed := netns.Routes()
	if err = errors.Join(err, failed); err != nil {
		log.G(ctx).WithError(err).Warn("process provider: read the networks of the machine; podCIDR may overlap one of them")
	}
	for _, r := range routes {
		if r.To.Bits() >= 8 && !slices.ContainsFunc(all, func(n machineNetwork) bool { return n.prefix == r.To && !n.routed }) {
			all = append(all, machineNetwork{prefix: r.To, link: r.Interface, routed: true})
		}
	}
	return all
}
