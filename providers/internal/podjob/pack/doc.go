// SPDX-License-Identifier: Apache-2.0

// Package pack makes the bundle of a pod for package podjob, on the side of the node.
//
// The guarantee: a bundle has every object that the volumes of its pod name, and an object that is missing and not optional is an error.
//
// What surprises: it is not in package podjob, which is an agent inside machines and has nothing of providers in it.
package pack
