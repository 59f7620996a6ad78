// SPDX-License-Identifier: Apache-2.0

// Package containerd tests the provider cri as users run it: the binary virtual-kubelet, a real API server with
// scheduler and controllers, and containers in a containerd.
//
// All tests share one containerd, which nobody else uses; each has a node of its own. The tests
// are skipped where no containerd can run; package containerdtest says what that takes.
//
// What surprises: restarts of containerd are felt by every node, so tests that are not parallel come first
// and alone.
package containerd
