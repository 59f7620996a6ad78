// SPDX-License-Identifier: Apache-2.0

// Package remotecluster runs the pods of a node in another Kubernetes cluster. The cluster of the node is called
// the home cluster ("home"), the other one the remote cluster. Providers whose backend is a Kubernetes API use
// this package, and add their own configuration and features.
//
// The guarantees: the remote pod, including its name, is a function of the home pod (Translate), so a repeated
// create finds the first pod. After a restart, the provider finds pods by their labels, and writes nothing. All
// objects have labels with the home cluster and the node, and the provider reads, changes and removes only
// objects with its labels. If the remote cluster does not answer, no pod is lost: the provider reports the last
// known state.
//
// Note: a pod that a third party deletes in the remote cluster never ends as Succeeded, whatever the exit
// codes of its containers. The provider reports it as running until it is gone, and then the node treats it like
// any pod that its backend lost. If the deletion was requested while the provider did not run, so that its origin
// is unknown, the pod is reported as failed.
//
// This package does not use providerkit/service, which is for services that may create a second instance on a
// second create, and that have to be polled. Here the name identifies a pod: a create after a lost response
// returns AlreadyExists, a delete finds the pod by its name, and a watch reports changes.
//
// If pods have owner objects (OwnerKind) whose controller recreates lost pods, all these pods are one pod in the
// home cluster.
package remotecluster
