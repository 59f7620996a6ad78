// SPDX-License-Identifier: Apache-2.0

// Package eviction knows when a machine has too little left, and which pod must go for it then, by the rules of a kubelet:
// hard thresholds, the conditions of the node that follow from them, and the order of the pods.
//
// The guarantee: it is a pure function of what was measured; a signal that could not be measured is never met, and a
// condition stays for some time after its last cause, so that a node on the edge does not switch to and fro.
//
// What surprises: a pod that uses no more than it has requested goes after all that use more, whatever their priorities.
package eviction
