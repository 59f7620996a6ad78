// SPDX-License-Identifier: Apache-2.0

// Package containerdtest starts a private containerd for tests and measurements, and makes images for it without
// a registry.
//
// [Start] is for tests, [New] for other programs; both use Debian's packages containerd, runc,
// containernetworking-plugins and iptables. A containerd of this package has its own root, state, socket,
// bridge, subnet and cgroup, so it does not collide with the machine's containerd or with another one of this
// package. Its containers outlive it, as they do in production: Restart and Kill leave them running, and Close
// removes them and their files.
//
// Note: the next process that starts a containerd here removes the remains of a killed process, because slots are numbered and each
// is locked by its user. Images are not kept: a start takes half a second, and an import of busybox another half.
package containerdtest
