// SPDX-License-Identifier: Apache-2.0

// Package tensilekube is a provider that makes a whole Kubernetes cluster look like one node, as Tensile Kube does.
//
// The guarantee: what the package remotecluster promises; here are the configuration and the annotation by which a pod asks for
// nodes of the lower cluster.
//
// What surprises: a pod's own nodeSelector, affinity and tolerations are about the nodes of the upper cluster, and stay there.
package tensilekube
