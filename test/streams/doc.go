// SPDX-License-Identifier: Apache-2.0

// Package streams measures the memory of a process that serves streams of the kubelet API, while as many clients as a user may have do
// their worst. It has tests only, which run without the race detector: that takes several times the memory.
package streams
