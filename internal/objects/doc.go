// SPDX-License-Identifier: Apache-2.0

// Package objects reads the ConfigMaps and Secrets that the pods of this node
// name, one by one, as the Node authorizer allows it.
//
// The guarantee: an object that a tracked pod references has at most one watch,
// which starts with the first question about it and ends with the last pod that
// references it; a question is answered from there once the API server has
// answered, also when the answer is that the object does not exist. Requests and memory depend on
// the pods of this node only, not on the size of the cluster. What does
// not exist and what could not be read are different answers, always.
//
// What surprises: an object whose watch lost the API server is served as it was
// last seen, as a kubelet does, and an immutable object is read once and not
// watched at all. An identity that may only get objects, which is the least that a
// service account needs, gets each of them once a minute instead. Somebody who calls a lister's List, or asks for the informer,
// gets a cluster-wide watch; nobody else starts one.
package objects
