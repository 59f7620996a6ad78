// SPDX-License-Identifier: Apache-2.0

// Package netns creates network namespaces that outlive the process. Each namespace is bind-mounted on a file.
//
// The guarantee: no other goroutine runs on a thread that is in a namespace.
//
// Note: the mounts belong to the daemon's mount namespace. After a reboot, or after a restart of a daemon
// with private mounts, the files exist without namespaces: see [Alive].
package netns
