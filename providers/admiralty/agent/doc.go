// SPDX-License-Identifier: Apache-2.0

// Package agent is the scheduler of the admiralty provider. It runs in the source cluster, next to the nodes of
// the provider. Users mark pods by the annotation elect. The webhook of the agent changes these "elected" pods,
// and the agent binds each to the node of a target with enough free resources.
//
// The guarantees: the binding in the API server is the only record of a decision, so an agent that is killed
// leaves nothing to undo. A bound pod is subtracted from the free resources of its target until it exists there.
// A lease allows one agent at a time. No object gets a finalizer.
//
// Note: a pod fits only if a single node of the target has enough free resources for it, whatever the sum
// that the virtual node offers.
package agent
