// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what a node is installed with: the Helm chart, plain manifests made from it, and
// the description of the image. The Go files are their tests.
//
// The guarantee: what is in here is accepted by a real API server, in a namespace that enforces the
// restricted pod security standard, and gives the node the rights that it needs and no others.
//
// What surprises: it is a module of its own, because Helm is a large dependency.
// Run `go test . -update` to write the manifests again.
package deploy
