// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the installation of a node: the Helm chart, plain manifests made from it, and the
// description of the image. The Go files are their tests.
//
// The guarantee: a real API server accepts everything in this package, in a namespace that enforces the
// restricted pod security standard, and the node gets the rights that it needs and no others.
//
// Note: it is a module of its own, because Helm is a large dependency. Run `go test . -update` to write
// the manifests again.
package deploy
