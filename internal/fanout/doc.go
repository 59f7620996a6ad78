// SPDX-License-Identifier: Apache-2.0

// Package fanout lets many nodes of one process share one watch of pods and one watch of nodes.
//
// The guarantee: each node sees exactly its own pods and its own Node object, with the same events and tombstones, in the same order, as from a watch
// of its own. Objects of other nodes are dropped while they are decoded, and cost no memory.
//
// Note: one goroutine reads the watch and calls all handlers, so a slow handler delays all nodes. The handlers of the pod controller only
// queue a key.
package fanout
