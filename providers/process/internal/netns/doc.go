// SPDX-License-Identifier: Apache-2.0

// Package netns makes network namespaces that outlive the process. Each namespace is mounted on a file.
//
// The guarantee: a function that runs in a namespace runs there only. No other goroutine ever gets a thread in a
// namespace.
//
// The surprise: the files are mounts in the daemon's mount namespace. A daemon with private mounts, or a machine
// after a reboot, finds files without namespaces: see [Alive].
package netns
