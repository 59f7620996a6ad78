// SPDX-License-Identifier: Apache-2.0

// Package shim supervises one container, in a small process that outlives the daemon and runs the daemon's own
// binary.
//
// The guarantee: when a shim's container has ended, none of its processes is left, and the final state is on disk
// before any caller gets it. When a shim is killed, the kernel kills its container.
//
// Note: a binary that imports the package can be a shim. A process whose argv[0] is Argv0 never reaches
// main: the package's init function runs the shim and exits. It has few dependencies, so it is initialised before
// large packages, and a shim needs a fraction of the daemon's memory.
package shim
