// SPDX-License-Identifier: Apache-2.0

// Package remotecluster runs the pods of a node in another Kubernetes cluster, the remote cluster. Providers
// with a Kubernetes API as their backend use this package; they add the configuration and features of their own.
//
// The guarantees: the remote pod, including its name, follows from the pod at home alone (Translate), so a
// repeated create finds the first pod. After a restart, the provider finds pods by their labels, and writes
// nothing. All objects of one node of one home cluster carry the labels of both, and the provider reads, changes
// and removes nothing else. If the remote cluster does not answer, no pod is lost: the provider reports the last
// known state.
//
// The surprise: a pod removed by a third party in the remote cluster never ends as Succeeded, whatever the exit
// codes of its containers. The provider shows it as running until it is gone, and then the node decides as for
// any pod lost by its backend. If the node was away and cannot know which side asked for the removal, the pod
// has failed.
//
// It does not stand on providerkit/service. That package exists for services whose second create may make a second
// instance, and which are asked by lists. Here the name of a pod decides: a create after a lost answer finds the
// first pod (AlreadyExists), a delete looks for the pod by its name, and a watch tells which pods there are.
//
// Where pods have owner objects (OwnerKind) whose controller makes a lost pod again, all these pods count as one
// pod at home.
package remotecluster
