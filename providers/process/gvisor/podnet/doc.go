// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package podnet is the network of all pods of one node, in user space: one process, on gVisor's network stack, that needs no rights, no
// device and no program of the machine.
//
// A pod has one network card. Its other end is a socket (or a TUN device) of this process, which carries IPv4 packets. Serve passes packets
// between pods by their address, and opens a connection of the machine for each connection of a pod to another address.
//
// # Promises
//
//   - A pod sends from its own address only: other packets are dropped.
//   - A pod reaches no address of the machine, no loopback, link-local, metadata or multicast address, and no address that the
//     configuration denies. The numeric address is checked before each connection. The configuration may map single ports (services,
//     nameservers) to such addresses. See policy.go.
//   - A pod has limits for connections, flows, memory and file descriptors, and never gets more than it leaves for all others. See
//     allowance.go. Nobody waits for a pod that does not read. See nic.go.
//   - The process has no rights: see restrict.go.
//
// # What surprises
//
// Pods are kept by the connection of their supervisor. When this process is killed, supervisors attach their pods to the next one;
// connections of pods end with the process. There is no IPv6, and no fragment of a packet leaves the pods: a datagram of UDP has at most
// the MTU less 28 bytes.
package podnet
