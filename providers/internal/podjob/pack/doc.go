// SPDX-License-Identifier: Apache-2.0

// Package pack has what drivers share whose pods run by package podjob: the bundle of a pod, its streams, and the lines of its logs.
//
// The guarantee: a bundle has every object that the volumes of its pod name, and an object that is missing and not optional is an error.
//
// What surprises: it is not in package podjob, which is an agent inside machines and has nothing of providers in it.
package pack
