// SPDX-License-Identifier: Apache-2.0

// Package podclaims finds the PersistentVolumes that volumes of pods are bound to.
//
// The guarantees: only what a volume of the pod claims is read, each object by its name. A volume is returned only if claim and
// volume are bound to each other, and if its node affinity has this node; a claim that was made for a pod is only that
// pod's. What is wrong is said in a kubelet's words.
//
// What surprises: nothing is remembered. Who mounts a volume keeps what he needs of it, because containers start again while the
// API server is away.
package podclaims
