// SPDX-License-Identifier: Apache-2.0

// Package replicas lets several processes share nodes. They agree through leases in the API server and through
// nothing else.
//
// The guarantee: each process has a lease beside the leases of its nodes. A process stops acting for its nodes
// before another process may take them: it stops 7 s after the last renewal of its lease, and others count it as
// gone after 9 s without a renewal. No process compares clocks of two machines. All processes with the same view
// of members divide the nodes in the same way, evenly.
//
// The surprise: a share has the nodes that a process tries to get. The lease of a node alone decides which
// process acts for it; see package lease.
package replicas
