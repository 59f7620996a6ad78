// SPDX-License-Identifier: Apache-2.0

// Package kip is a provider that starts a virtual machine for each pod, of the size that the pod requests. An agent in the machine runs the pod.
//
// The guarantee: a pod has one machine, and a machine without a running pod does not outlive its node for long. The provider has no state except the tags
// of machines and the key of the node's authority. A restarted node finds its machines with a list.
//
// Surprises: the node connects to machines, and machines never connect to the node. If a node is gone for good, a machine without a running pod ends
// itself after orphanAfter, and a machine with a running pod after abandonedAfter, if that is set.
package kip
