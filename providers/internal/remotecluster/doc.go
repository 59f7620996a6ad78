// SPDX-License-Identifier: Apache-2.0

// Package remotecluster runs the pods of a node in another Kubernetes cluster, the remote cluster. Providers
// whose backend is a Kubernetes API build on it; they add the configuration, and features of their own.
//
// The guarantees: a remote pod, including its name, follows from the pod at home alone (Translate), so a
// repeated create finds the pod of the first create. After a restart, pods are found by their labels, without a
// write. The objects of one node of one home cluster carry the labels of both, and no other object is read,
// changed or removed. A silent remote cluster costs no pod: the last seen state counts.
//
// The surprise: a pod that somebody removes in the remote cluster never ends as Succeeded, whatever its
// containers exited with. It is shown as running until it is gone, and then the node decides as for any pod that
// its backend lost. If nobody can tell who requested the removal, because the node was away, the pod has failed.
//
// If a controller makes pods from other objects (OwnerKind) and remakes a lost pod, all of these are one pod at
// home.
package remotecluster
