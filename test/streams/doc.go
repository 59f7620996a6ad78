// SPDX-License-Identifier: Apache-2.0

// Package streams measures the memory of a process that serves streams of the kubelet API, while as many clients as one user may have
// misbehave as much as possible. It has only tests. They run without the race detector, which takes several times the memory.
package streams
