// SPDX-License-Identifier: Apache-2.0

// Package remotecluster runs the pods of a node in another Kubernetes cluster, the remote one. Providers whose backend is a
// Kubernetes API stand on it; what is theirs is the configuration, and what they add.
//
// The guarantees: what a pod is over there follows from the pod at home alone (Translate), its name included, so a create that is
// done again finds the pod of the first one. After a restart pods are found by their labels, and nothing is written. What
// belongs to one node of one home cluster carries the labels of both, and nothing else is read, changed or removed. A remote
// cluster that does not answer costs no pod: what was seen last is what is said.
//
// What surprises: a pod that somebody removes over there never ends as Succeeded, whatever its containers exited with. It is shown
// as running until it is gone, and then the node decides as for any pod that its backend lost. Where nobody can tell who asked
// for it, because the node was away, it has failed.
//
// Where pods are made of other objects (OwnerKind), whose controller makes a lost pod again, all of these are one pod at home.
package remotecluster
