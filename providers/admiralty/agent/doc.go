// SPDX-License-Identifier: Apache-2.0

// Package agent binds elected pods, marked by an annotation, to a target with room for them. The agent runs in
// the source cluster, beside the nodes of provider admiralty. Its webhook marks elected pods for the agent, and
// the agent binds each pod to one of the nodes.
//
// The guarantees: the API server binds a pod once, and there is no other record of a choice. An agent that is
// killed therefore leaves nothing to undo. A pod bound here counts against the room of a target until the target
// counts the pod itself. A lease lets one agent at a time choose. No object gets a finalizer.
//
// The surprise: a pod fits only if one node of the target has room for all of it, whatever the virtual node
// offers in sum.
package agent
