// SPDX-License-Identifier: Apache-2.0

// Package kip is a provider that starts a virtual machine for each pod, of the size that the pod asks for. An agent in the machine runs the pod.
//
// The guarantee: a pod has one machine, and no machine goes on without a node that knows it. The tags of machines and the key of the node's
// authority are all the state that there is: a node that starts again finds its machines by a list.
//
// What surprises: the node connects with machines, and they never with the node. And a machine ends by itself when no node speaks to it any more, so a node
// that is gone for good costs nothing.
package kip
