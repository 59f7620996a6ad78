// SPDX-License-Identifier: Apache-2.0

// Package shim keeps one container: a small process that outlives the daemon, made from the daemon's own binary.
//
// The guarantee: when a shim's container has ended, none of its processes is left, and its end is in a file
// before any caller learns of it. When a shim is killed, the kernel kills its container.
//
// The surprise: importing the package is enough to be a shim. A process whose argv[0] is Argv0 never reaches
// main: the package has few dependencies, so it is initialised before the large ones, and ends the process
// itself. That keeps a shim at a fraction of the daemon's memory.
package shim
