// SPDX-License-Identifier: Apache-2.0

// Package interlink runs pods as jobs behind an interLink API server: on Slurm, HTCondor and other systems with
// a plugin. The package is the virtual-node half of the InterLink protocol; package plugin is the other half.
//
// The guarantees: one request asks for the states of all pods. A create request whose answer was lost never
// starts a second job. An API server that does not answer, or answers with an error, never makes a pod look
// lost.
//
// The surprise: the protocol has no list. The provider asks the server only for pods of the cluster. If a pod is
// removed by force while this node is down, its job goes on and the provider never asks for it.
package interlink
