// SPDX-License-Identifier: Apache-2.0

// Package liqo runs the pods of a node in a cluster that is peered by Liqo: each is a ShadowPod there, of which Liqo's controllers make the
// pod.
//
// The guarantees are those of remotecluster. A pod that is lost over there is made again by Liqo's controllers, whether this process runs or
// not: at home it is the same pod, whose containers were restarted. A pod is gone when both are gone, the ShadowPod and the pod.
//
// What surprises: which remote namespace a namespace has is Liqo's to say, in a NamespaceMap of the home cluster, which a node may not read.
// Access to it is configured; or the namespaces are.
package liqo
