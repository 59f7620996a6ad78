// SPDX-License-Identifier: Apache-2.0

// Package agent gives pods that are elected, by an annotation, to the target where they fit. It runs in the source cluster, beside the
// nodes of provider admiralty: a webhook hands elected pods to it, and it binds each to one of the nodes.
//
// The guarantees: a pod is bound once, by the API server; there is no other record of a choice, so an agent that is killed leaves
// nothing to take back. Room is counted until the target itself counts it: what is bound here and not yet on a node over there
// is taken off. One agent at a time chooses, by a lease. No object gets a finalizer.
//
// What surprises: a pod fits if one node of the target has room for all of it, whatever the virtual node offers in sum.
package agent
