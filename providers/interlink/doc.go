// SPDX-License-Identifier: Apache-2.0

// Package interlink runs pods as jobs behind an interLink API server: on Slurm, HTCondor and other systems that there is a plugin for. It is
// the half of the InterLink protocol that is a virtual node; package plugin is the other one.
//
// It promises that one request asks for the states of all pods, that a create whose answer was lost is no second job, and that an API server
// that does not answer, or answers with an error, never makes a pod look lost.
//
// What surprises: the protocol has no list. The server is asked for the pods that the cluster has, so a pod that was removed by force while
// this node was down goes on as a job that nobody asks for.
package interlink
