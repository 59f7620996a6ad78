// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// servicesTable is the nftables table with the Services of the cluster.
const servicesTable = "vk-services"

// Registers of a rule. The first four have the key of a lookup.
const (
	firstRegister = unix.NFT_REG_1
	register0     = unix.NFT_REG32_00
	register1     = unix.NFT_REG32_01
	register2     = unix.NFT_REG32_02
	register3     = unix.NFT_REG32_03
)

// serviceKey returns the key of a port: address, protocol and port, each in a register of four bytes.
func serviceKey(p cell.ServicePort) []byte {
	protocol := byte(unix.IPPROTO_TCP)
	if p.Protocol == corev1.ProtocolUDP {
		protocol = unix.IPPROTO_UDP
	}
	address := p.Service.Addr().As4()
	return append(binary.BigEndian.AppendUint16(append(address[:], protocol, 0, 0, 0), p.Service.Port()), 0, 0)
}

// endpointData returns the address and the port of an endpoint, each in a register.
func endpointData(e netip.AddrPort) []byte {
	address := e.Addr().As4()
	return append(binary.BigEndian.AppendUint16(address[:], e.Port()), 0, 0)
}

// stickTo returns the endpoint for a sticky port: the same one as long as it exists, and different ones for different machines.
func stickTo(p cell.ServicePort, name string) netip.AddrPort {
	rank := func(e netip.AddrPort) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, name, p.Service, p.Protocol, e)
		return h.Sum64()
	}
	return slices.MaxFunc(p.Endpoints, func(x, y netip.AddrPort) int { return cmp.Compare(rank(x), rank(y)) })
}

// serviceElements returns the map elements, grouped by the number of endpoints of a port. Group 0 has the ports without endpoints.
func serviceElements(s cell.Services, name string) map[int][]nftables.SetElement {
	all := map[int][]nftables.SetElement{}
	seen := map[string]bool{}
	for _, p := range s.Ports {
		key := serviceKey(p)
		if seen[string(key)] {
			continue // the kernel rejects duplicate keys
		}
		seen[string(key)] = true
		endpoints := p.Endpoints
		if len(endpoints) == 0 {
			all[0] = append(all[0], nftables.SetElement{Key: key})
			continue
		}
		if p.Sticky {
			endpoints = []netip.AddrPort{stickTo(p, name)}
		}
		for i, e := range endpoints {
			all[len(endpoints)] = append(all[len(endpoints)], nftables.SetElement{
				Key: binary.NativeEndian.AppendUint32(slices.Clone(key), uint32(i)), Val: endpointData(e), //nolint:gosec // it is an index
			})
		}
	}
	return all
}

// elementsInMessage is the number of elements in one message: the kernel's limit is 64 KiB.
const elementsInMessage = 500

// servicesBuffer is the size of a transaction's buffer in the kernel, enough for about 50,000 endpoints.
const servicesBuffer = 8 << 20

// serviceSetter returns a function that replaces the Services of the machine with that name. New connections to a cluster IP go to a random endpoint.
// Existing connections keep their endpoint.
func serviceSetter(name string) func(cell.Services) error {
	return func(s cell.Services) error {
		c, err := nftables.New(nftables.WithSockOptions(func(conn *netlink.Conn) error { return conn.SetWriteBuffer(servicesBuffer) }))
		if err != nil {
			return fmt.Errorf("open nftables: %w", err)
		}
		table := &nftables.Table{Name: servicesTable, Family: nftables.TableFamilyIPv4}
		c.AddTable(table) // otherwise the delete fails if the table does not exist
		c.DelTable(table)
		c.AddTable(table)
		elements := serviceElements(s, name)
		if none := elements[0]; len(none) > 0 {
			if err := refuseServices(c, table, none); err != nil {
				return err
			}
			delete(elements, 0)
		}
		chain := c.AddChain(&nftables.Chain{Name: "services", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
		for _, n := range slices.Sorted(maps.Keys(elements)) {
			if err := translateServices(c, chain, n, elements[n]); err != nil {
				return err
			}
		}
		if err := c.Flush(); err != nil {
			return fmt.Errorf("apply Services with nftables: %w", err)
		}
		return nil
	}
}

// keyType is the type of a key, and indexType the type of a key with the index of an endpoint.
var (
	keyType   = nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService)
	indexType = nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService, nftables.TypeMark)
	dataType  = nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService)
)

// loadKey loads the key of a packet into the first three registers.
func loadKey() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: register0, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4}, // ip daddr
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register1},
		&expr.Payload{DestRegister: register2, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, // th dport
	}
}

// addElements adds a set with elements.
func addElements(c *nftables.Conn, set *nftables.Set, elements []nftables.SetElement) error {
	if err := c.AddSet(set, nil); err != nil {
		return fmt.Errorf("write the set %s: %w", set.Name, err)
	}
	for some := range slices.Chunk(elements, elementsInMessage) {
		if err := c.SetAddElements(set, some); err != nil {
			return fmt.Errorf("write the set %s: %w", set.Name, err)
		}
	}
	return nil
}

// translateServices adds the rule for ports with n endpoints.
func translateServices(c *nftables.Conn, chain *nftables.Chain, n int, elements []nftables.SetElement) error {
	set := &nftables.Set{Table: chain.Table, Name: fmt.Sprintf("of-%d", n), IsMap: true, Concatenation: true, KeyType: indexType, DataType: dataType}
	if err := addElements(c, set, elements); err != nil {
		return err
	}
	c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: append(loadKey(),
		&expr.Numgen{Register: register3, Modulus: uint32(n), Type: unix.NFT_NG_RANDOM}, //nolint:gosec // it is the number of elements of a slice
		&expr.Lookup{SourceRegister: firstRegister, DestRegister: firstRegister, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: firstRegister, RegProtoMin: register1},
	)})
	return nil
}

// refuseServices adds the rules that refuse new connections to ports without an endpoint. They come before the translation. Existing connections
// continue, because their endpoint may be unready only for a moment.
func refuseServices(c *nftables.Conn, table *nftables.Table, elements []nftables.SetElement) error {
	set := &nftables.Set{Table: table, Name: "of-0", Concatenation: true, KeyType: keyType}
	if err := addElements(c, set, elements); err != nil {
		return err
	}
	before := *nftables.ChainPriorityNATDest - 10
	chain := c.AddChain(&nftables.Chain{Name: "refused", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: &before})
	fresh := []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitNEW), Xor: make([]byte, 4)},
		&expr.Cmp{Register: firstRegister, Op: expr.CmpOpNeq, Data: make([]byte, 4)},
	}
	match := append(append(fresh, loadKey()...), &expr.Lookup{SourceRegister: firstRegister, SetName: set.Name, SetID: set.ID})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(slices.Clone(match),
		&expr.Cmp{Register: register1, Op: expr.CmpOpEq, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Reject{Type: unix.NFT_REJECT_TCP_RST},
	)})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(match, &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3})}) // port unreachable
	return nil
}
