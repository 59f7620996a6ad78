// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a runtime of containers must do next for one pod: the rules of a kubelet, as a
// pure function (Next) of the pod, of what the runtime has (Observed) and of what the
// pod's worker remembers (Memory).
//
// The guarantee: whoever does what Next says, tells Memory when an action begins and ends, and looks
// again, never has two instances of one container, never starts a main container before the init
// containers are done, and ends with what the pod asks for or with a terminal pod.
//
// What surprises: the actions of one Plan need not wait for each other, they can all be begun at once. What
// must come later is in a later Plan: Next is asked whenever something began, ended or changed.
package plan
