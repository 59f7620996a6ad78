// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package podnet is the network of all pods of one node, in user space. It is one process on gVisor's network
// stack, and it needs no rights, no device and no program of the machine.
//
// A pod has one network card. Its other end is a socket (or a TUN device) of this process, which carries IPv4
// packets. Serve passes packets between pods by their address, and opens a connection of the machine for each
// connection of a pod to another address.
//
// # Promises
//
//   - A pod sends from its own address only: other packets are dropped.
//   - A pod reaches no address of the machine, no loopback, link-local, metadata or multicast address, and no address that the
//     configuration denies. The numeric address is checked before each connection. The configuration may map single ports (services,
//     nameservers) to such addresses. See policy.go.
//   - A pod has limits for connections, flows, memory and file descriptors, and never gets more than it leaves for all others. See
//     allowance.go. A pod that does not read delays no other pod. See nic.go.
//   - The process has no rights: see restrict.go.
//
// # Surprises
//
// A pod stays attached as long as the connection of its supervisor lasts. When this process is killed,
// supervisors attach their pods to the next process, but the connections of the pods are lost. There is no IPv6.
// No fragment of a packet leaves the pods: a UDP datagram has at most the MTU less 28 bytes.
package podnet
