// SPDX-License-Identifier: Apache-2.0

// Package liqo runs the pods of a node in a cluster peered by Liqo. The provider creates a ShadowPod for each
// pod in the remote cluster, and Liqo's controllers make the remote pod.
//
// The guarantees: the guarantees of package remotecluster. Liqo's controllers make a lost remote pod again,
// whether this process runs or not. At home it stays the same pod, and its containers count as restarted. A pod
// is gone only when both the ShadowPod and the remote pod are gone.
//
// The surprise: Liqo decides which remote namespace belongs to a namespace, in a NamespaceMap of the home
// cluster. A node may not read this object. Therefore users configure access to the NamespaceMap, or configure
// the namespaces.
package liqo
