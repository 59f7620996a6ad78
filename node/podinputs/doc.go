// SPDX-License-Identifier: Apache-2.0

// Package podinputs names what a pod needs besides its own object: ConfigMaps and Secrets, tokens, credentials of registries, certificates and
// volumes.
//
// It promises to import the API of Kubernetes and no client of it, so that a program which runs pods and has no API server costs no more than that.
//
// What surprises: package node has the same types under the same names, and these are the ones that providers use.
package podinputs
