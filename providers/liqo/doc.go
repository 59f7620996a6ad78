// SPDX-License-Identifier: Apache-2.0

// Package liqo runs the pods of a node in a cluster that is peered by Liqo. The provider creates a ShadowPod in
// the remote cluster for each pod, and Liqo's controllers create the remote pod.
//
// The guarantees are those of package remotecluster. Liqo's controllers recreate a lost remote pod, even while
// this process does not run. In the home cluster it stays the same pod, and its containers count as restarted. A
// pod is gone only when both the ShadowPod and the remote pod are gone.
//
// Note: Liqo maps namespaces to remote namespaces in a NamespaceMap in the home cluster, which a node has
// no permission to read. So users must configure access to the NamespaceMap, or the namespaces.
package liqo
