// SPDX-License-Identifier: Apache-2.0

// Package tensilekube is a provider that makes a whole Kubernetes cluster look like one node, as Tensile Kube
// does.
//
// The guarantee: the guarantees of package remotecluster. This package has the configuration, and the annotation
// by which a pod selects nodes of the lower cluster.
//
// The surprise: a pod's own nodeSelector, affinity and tolerations are about nodes of the upper cluster, and
// stay there.
package tensilekube
