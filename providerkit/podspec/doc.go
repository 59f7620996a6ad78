// SPDX-License-Identifier: Apache-2.0

// Package podspec makes of a pod's spec what a backend takes: the files of the volumes that are written from the API, and the grace period.
//
// It promises what a kubelet gives: the same keys, paths and modes, the same words for what is missing, and an
// object that is optional may be. What a volume asks for and cannot be had is an error; nothing is left out.
//
// What surprises: nothing is watched. A provider that keeps files up to date asks again, at the latest when a token
// among them is to be replaced; of certificates it is not told when that is.
package podspec
