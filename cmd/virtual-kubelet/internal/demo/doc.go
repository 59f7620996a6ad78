// SPDX-License-Identifier: Apache-2.0

// Package demo runs a cluster, the emulator of a cloud and a virtual node on this machine to try a provider, until it is stopped.
//
// The programs devcluster and emulate and the image of the first pod are files next to this program, as in the archive of a release for Linux.
// Everything that the demo writes is in one temporary folder, which it removes at the end.
//
// Note: each process has its own process group, so that Ctrl-C in a terminal reaches only this program, which ends the node before the
// cluster. When this program is killed, the kernel ends the others.
package demo
