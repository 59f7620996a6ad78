// SPDX-License-Identifier: Apache-2.0

// Package podinputs defines the inputs of a pod other than its own object: ConfigMaps and Secrets, tokens, credentials of registries,
// certificates and volumes.
//
// The guarantee: it imports the API types of Kubernetes but no client, so that programs that run pods without an API server stay small.
//
// Note: package node has the same types under the same names, and providers use the types of package
// node.
package podinputs
