// SPDX-License-Identifier: Apache-2.0

// Package tensilekube is a provider that makes a whole Kubernetes cluster look like one node, as Tensile Kube
// does.
//
// The guarantees are those of package remotecluster. This package adds the configuration, and the annotation with
// which a pod selects nodes of the lower cluster. The cluster of the node is called the upper cluster.
//
// Note: a pod's own nodeSelector, affinity and tolerations apply to nodes of the upper cluster, and are
// not copied.
package tensilekube
