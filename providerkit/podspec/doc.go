// SPDX-License-Identifier: Apache-2.0

// Package podspec turns a pod's spec into the input of a backend: the grace period, and the files of volumes
// from the API.
//
// The guarantee: it uses the same keys, paths, modes and error texts as a kubelet. An optional object may be missing. Any other unavailable
// part of a volume is an error; nothing is left out.
//
// Note: nothing is watched. To keep files up to date, a provider calls Files again, at the latest when a token among them must be
// replaced. The package does not report when certificates must be replaced.
package podspec
