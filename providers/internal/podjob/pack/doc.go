// SPDX-License-Identifier: Apache-2.0

// Package pack has the shared code of drivers with pods of package podjob: the bundle of a pod, its streams, and the lines of its logs.
//
// The guarantee: a bundle has every object of the pod's volumes. A missing object is an error unless it is optional.
//
// Note: this package is separate from package podjob, because podjob runs inside machines and must not contain code of providers.
package pack
