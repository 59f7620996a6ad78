// SPDX-License-Identifier: Apache-2.0

// Package process tests what becomes of pods when the daemon's process is killed, frozen,
// stopped, doubled or short of memory: the rows "Process" of the fault matrix.
//
// Each test has a namespace and a node of its own in a real API server, and a backend in the test's
// process, which outlives the daemon in its own. What the API server shows, from a raw
// watch, and what the backend did are recorded, and judged when a pod is through.
//
// What surprises: nothing waits for a time to pass but the faults themselves; how long they
// last, and how often they come, is shorter in a plain run than the matrix says.
package process
