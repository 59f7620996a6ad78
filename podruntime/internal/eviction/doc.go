// SPDX-License-Identifier: Apache-2.0

// Package eviction decides whether a machine has too little of a resource, and selects the pod to evict for it, by the rules of a kubelet: hard
// thresholds, the conditions of the node, and the order of the pods.
//
// The guarantee: it is a pure function of the measurements. A signal without a measurement is never met. A condition stays for some time after its
// last cause, so that the conditions of a node near a threshold do not oscillate.
//
// Note: a pod within its requests is evicted after all pods above their requests, independently of their priorities.
package eviction
