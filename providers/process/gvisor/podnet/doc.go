// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package podnet is the network of all pods of one node, in user space. It is one process that uses gVisor's
// network stack. It needs no privileges, no device and no other program.
//
// A pod has one network interface. Its other end is a socket (or a TUN device) of this process, which carries
// IPv4 packets. The process forwards packets between pods by their address. For each connection of a pod to
// another address it opens a connection of the machine.
//
// # Promises
//
//   - A pod can send only from its own address: other packets are dropped.
//   - A pod cannot reach addresses of the machine, loopback, link-local, metadata and multicast addresses, or addresses that the
//     configuration denies. The numeric address is checked before each connection. The configuration may map single ports (services,
//     nameservers) to such addresses. See policy.go.
//   - A pod has limits for connections, flows, memory and file descriptors, and can never use more than it leaves free. See
//     allowance.go. A pod that does not read does not delay other pods. See nic.go.
//   - The process has no privileges: see restrict.go.
//
// # Surprises
//
// A pod stays attached as long as the connection of its supervisor lasts. When this process is killed,
// supervisors attach their pods to the next process, but the connections of the pods are lost. There is no IPv6.
// Fragments are not forwarded outside of the pod network: a UDP datagram has at most the MTU minus 28 bytes.
package podnet
