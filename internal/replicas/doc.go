// SPDX-License-Identifier: Apache-2.0

// Package replicas lets several processes share nodes, with the API server as the only thing that they agree by.
//
// The guarantee: each process has a lease beside those of the nodes. What a process may do for its nodes ends before another one may take them: it
// stops 7 s after the last renewal of that lease, and it counts as gone after 9 s in which others saw none. Clocks of machines are never compared.
// All processes that see the same others share the nodes in the same way, evenly.
//
// What surprises: the share of a process is only what it tries to have. Who acts for a node says the lease of the node alone, see package lease.
package replicas
