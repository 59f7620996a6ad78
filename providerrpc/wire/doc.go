// SPDX-License-Identifier: Apache-2.0

// Package wire is the part of the protocol shared by node and plugin: encodings of Kubernetes objects, kinds of
// error, the check of the process at the other end of a socket, and the pieces of streams.
//
// The guarantee: an error of a kind in package errdefs, or of an ended context, has the same kind on the other
// side. A failure of the wire has no kind: a broken connection is never not-found.
//
// The surprise: errors of gRPC itself have codes too. Therefore only codes that gRPC never makes up stand for
// kinds.
package wire
