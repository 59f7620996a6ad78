// SPDX-License-Identifier: Apache-2.0

// Package fanout lets many nodes of one process share one watch of pods and
// one of nodes.
//
// The guarantee: each node sees exactly its own pods and its own Node object, with
// the events and tombstones that a watch of its own would show, in their
// order. What belongs to no node of the process is dropped as it is decoded, and
// costs no memory.
//
// What surprises: handlers are called one after the other by the goroutine that
// reads the watch, so a handler that waits holds up all nodes. Those of the pod
// controller mark a key and return.
package fanout
