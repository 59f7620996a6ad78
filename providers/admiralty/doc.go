// SPDX-License-Identifier: Apache-2.0

// Package admiralty is a provider that makes a Target of Admiralty look like a node. Pods run in the cluster of
// the Target: as PodChaperons where an agent of Admiralty makes pods of PodChaperons, or else as Pods.
//
// The guarantee: the guarantees of package remotecluster. This package has the configuration and selects the
// constraints of a pod that apply in the target. A scheduler decides which node a pod goes to; package agent,
// below this package, is such a scheduler.
//
// The surprise: pods have no finalizers. The watch reports a pod lost by its target, and so does every later
// relist.
package admiralty
