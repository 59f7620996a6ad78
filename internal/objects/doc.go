// SPDX-License-Identifier: Apache-2.0

// Package objects reads the ConfigMaps and Secrets of this node's pods, one by one, as the Node authorizer
// allows.
//
// The guarantee: an object referenced by a tracked pod has at most one watch. The watch starts with the first
// request for the object, and ends with its last pod. It answers every request after the API server has answered
// once, also for an object that does not exist. Requests and memory depend on the pods of this node, not on the
// size of the cluster. "Does not exist" and "could not be read" are different answers, always.
//
// The surprise: while a watch has lost the API server, the object is served in its last seen state, as by a
// kubelet. An immutable object is read once and not watched. An identity that may only get objects, the least
// that a service account needs, reads each object once a minute instead. A call of a lister's List, or a request
// for the informer, starts a cluster-wide watch; nothing else does.
package objects
