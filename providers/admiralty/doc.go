// SPDX-License-Identifier: Apache-2.0

// Package admiralty is a provider that makes a Target of Admiralty look like a node. Pods run in the cluster of
// the Target. The provider creates Pods there, or PodChaperons if an agent of Admiralty in the target cluster
// creates the Pods.
//
// The guarantees are those of package remotecluster. This package adds the configuration, and determines the node
// constraints of a pod in the target. A scheduler chooses the target of a pod; package agent is such a scheduler.
//
// Note: unlike in Admiralty, pods have no finalizers. The watch and every later list show that the target
// has lost a pod.
package admiralty
