// SPDX-License-Identifier: Apache-2.0

// Package podspec turns a pod's spec into the input of a backend: the files of volumes that are written from the
// API, and the grace period.
//
// The guarantee: it gives the same keys, paths, modes and error texts as a kubelet. An optional object may be
// missing. Anything else that a volume asks for and that is not available is an error; nothing is left out.
//
// The surprise: nothing is watched. A provider that keeps files up to date asks again, at the latest when a
// token among them must be replaced. It is not told when certificates must be replaced.
package podspec
