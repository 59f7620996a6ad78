// SPDX-License-Identifier: Apache-2.0

// Package streams measures the memory of a process that serves streams of the kubelet API, while as many clients
// as a user may have behave as badly as possible. It has tests only. They run without the race detector, which
// takes several times the memory.
package streams
