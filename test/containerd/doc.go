// SPDX-License-Identifier: Apache-2.0

// Package containerd tests the provider cri as users run it: the binary virtual-kubelet, a real API server with
// scheduler and controllers, and containers in a containerd.
//
// All tests share one private containerd; each has a node of its own. The tests are skipped where no containerd
// can run; package containerdtest lists the requirements.
//
// Note: a restart of containerd affects every node, so such tests are not parallel and run first.
package containerd
