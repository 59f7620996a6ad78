// SPDX-License-Identifier: Apache-2.0

// Package podinputs names the inputs of a pod besides its own object: ConfigMaps and Secrets, tokens,
// credentials of registries, certificates and volumes.
//
// The guarantee: it imports the API of Kubernetes and no client of it. A program that runs pods without an API
// server costs no more than that.
//
// The surprise: package node has the same types under the same names, and providers use the types of package
// node.
package podinputs
