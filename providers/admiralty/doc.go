// SPDX-License-Identifier: Apache-2.0

// Package admiralty is a provider that makes a Target of Admiralty look like a node: pods run in the cluster of the Target, as
// PodChaperons where an agent of Admiralty makes pods of those, or as Pods.
//
// The guarantee: what the package remotecluster promises; here are the configuration, and what of a pod's constraints the target
// has. Which node a pod goes to decides whatever schedules it; the package agent, below this one, is such a program.
//
// What surprises: there are no finalizers on pods. A pod that its target lost is told by the watch, and by every relist after it.
package admiralty
