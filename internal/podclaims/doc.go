// SPDX-License-Identifier: Apache-2.0

// Package podclaims finds the PersistentVolumes that volumes of pods are bound to.
//
// The guarantees: it reads only the claims of the pod's volumes and their PersistentVolumes, each by its name. It returns a volume only if claim and
// volume are bound to each other, and if the node affinity of the volume includes this node. A claim that was made for a pod serves only that pod.
// Errors have a kubelet's messages.
//
// Note: the package caches nothing. The caller stores the results that it needs, because containers may restart while the API server is
// unavailable.
package podclaims
