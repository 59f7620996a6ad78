// SPDX-License-Identifier: Apache-2.0

// Package process tests what happens to pods when the daemon's process is killed, frozen, stopped, duplicated or short of memory: the rows
// "Process" of the fault matrix.
//
// Each test has a namespace and a node of its own in a real API server. Its backend is in the test's process, so
// it outlives the daemon, which is another process. A test records the pods in the API server, from a raw watch,
// and the actions of the backend. It checks the records of a pod at the pod's end.
//
// Note: only the faults themselves take time; tests wait for nothing else. In a plain run faults are
// shorter and fewer than in the matrix.
package process
