// SPDX-License-Identifier: Apache-2.0

// Package netns makes network namespaces that outlive the process: each is a file that a namespace is mounted on.
//
// The guarantee: what runs in a namespace runs there only; no other goroutine ever gets a thread that is in one.
//
// What surprises: the files are mounts of the daemon's mount namespace. A daemon with private mounts, or a machine that
// was started again, finds files that are no namespaces any more: [Alive] tells.
package netns
