// SPDX-License-Identifier: Apache-2.0

// Package containerdtest starts a private containerd for tests and measurements, and makes images for it
// without a registry.
//
// [Start] is for tests, [New] for other programs; both use Debian's packages containerd, runc,
// containernetworking-plugins and iptables. A containerd of ours has its own root, state, socket, bridge,
// subnet and cgroup, so that it meets neither the machine's containerd nor another one of ours. Its
// containers outlive it, as they do in production: Restart and Kill leave them running, and Close
// removes them and all that they had.
//
// What surprises: what a process left behind that was killed is removed by the next one that starts a
// containerd here, because places are numbered and each is locked by who uses it. And images are not
// kept: a start costs half a second, an import of busybox as much again.
package containerdtest
