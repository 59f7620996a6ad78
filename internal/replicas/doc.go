// SPDX-License-Identifier: Apache-2.0

// Package replicas lets several processes share nodes. They coordinate only through leases in the API server.
//
// The guarantee: each process has its own lease in addition to the leases of its nodes. A process stops acting for its nodes before another process
// may take them: it stops 7 s after the last renewal of its lease, and others count it as gone after 9 s without a renewal. No process compares the
// clocks of two machines. All processes with the same view of the members divide the nodes in the same way, evenly.
//
// Note: a share only has the nodes that a process tries to get. The lease of a node decides which process acts for it: see package lease.
package replicas
