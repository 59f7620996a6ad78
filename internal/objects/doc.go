// SPDX-License-Identifier: Apache-2.0

// Package objects reads the ConfigMaps and Secrets of this node's pods, one by one, as the Node authorizer allows.
//
// The guarantee: an object referenced by a tracked pod has at most one watch. The watch starts with the first request for the object, and ends with
// its last pod. After the first answer of the API server, the watch answers all requests, including requests for a missing object. Requests and
// memory depend on the pods of this node, not on the size of the cluster. "Does not exist" and "could not be read" are always different answers.
//
// Note: while a watch is disconnected, the object is served in its last known state, as in a kubelet. An immutable object is read once and
// not watched. An identity that may only get objects, which is the minimum for a service account, reads each object once a minute instead. Only a
// call of a lister's List, or a request for the informer, starts a cluster-wide watch.
package objects
