// SPDX-License-Identifier: Apache-2.0

// Package mock is a provider that simulates pods: they start, become ready, run,
// complete or fail and stop as configuration and annotations say, with
// logs, exec, attach, port-forward and stats that answer.
//
// The guarantee: what a pod looks like is a pure function of its plan and the
// time. There is no goroutine and no timer per pod, so that thousands of pods
// cost next to nothing, and what GetPod says and what is reported cannot differ.
//
// What surprises: the plan of a pod is fixed when it is created; annotations that
// change later have no effect. And the simulation lives in memory: after a restart of
// the process, a pod that the API server shows as started here is taken
// up again at the same point of its life, with its address.
package mock
