// SPDX-License-Identifier: Apache-2.0

// Package plan decides the next steps of a container runtime for one pod: the rules of a kubelet, as a pure function (Next) of the pod, of the
// runtime's state (Observed) and of the memory of the pod's worker (Memory).
//
// The guarantee: a worker follows Next, tells Memory when an action begins and ends, and calls Next again. It never has two instances of one
// container, never starts a main container before the init containers are done, and ends with the desired state of the pod, or with a terminal pod.
//
// Note: the actions of one Plan need not wait for each other, and can all begin at once. Later steps are in a later Plan: call Next whenever
// an action begins or ends, or the state changes.
package plan
