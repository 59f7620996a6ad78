// SPDX-License-Identifier: Apache-2.0

// Package mock is a provider that simulates pods. They start, become ready, run, complete or fail, and stop, as
// the configuration and annotations require. Logs, exec, attach, port-forward and stats answer.
//
// The guarantee: the state of a pod is a pure function of its plan and the time. There is no goroutine and no
// timer per pod, so thousands of pods cost next to nothing. GetPod and reports cannot differ.
//
// Note: the plan of a pod is fixed when the pod is created; later changes of annotations have no effect.
// The simulation lives in memory. After a restart of the process, a pod that the API server shows as started
// here goes on at the same point of its life, with its address.
package mock
