// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Assign divides the nodes among the members. The same nodes and members give the same result in any order. The shares differ by at most one node,
// and few nodes move when a member joins or leaves.
func Assign(nodes, members []string) map[string][]string {
	if len(members) == 0 {
		return nil
	}
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	shares := make(map[string][]string, len(members))
	room := make(map[string]int, len(members))
	for i, member := range members {
		room[member] = len(nodes) / len(members)
		if i < len(nodes)%len(members) {
			room[member]++
		}
	}
	type wish struct {
		node, member string
		weight       uint64
	}
	// Take the pairs of member and node by weight. A weight depends only on the pair, so it stays the same when other members join or leave.
	wishes := make([]wish, 0, len(nodes)*len(members))
	for _, node := range nodes {
		for _, member := range members {
			wishes = append(wishes, wish{node, member, memberWeight(node, member)})
		}
	}
	slices.SortFunc(wishes, func(a, b wish) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.node, b.node), cmp.Compare(a.member, b.member))
	})
	placed := make(map[string]bool, len(nodes))
	for _, w := range wishes {
		if placed[w.node] || room[w.member] == 0 {
			continue
		}
		placed[w.node] = true
		room[w.member]--
		shares[w.member] = append(shares[w.member], w.node)
	}
	for _, share := range shares {
		slices.Sort(share)
	}
	return shares
}

func memberWeight(node, member string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node + "\x00" + member)) // Write never fails
	x := h.Sum64()
	// FNV gives similar values for names that differ in the last letters; this mixes the bits.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
