// SPDX-License-Identifier: Apache-2.0

// Package wire is what node and plugin share of the protocol: encodings of Kubernetes objects, kinds of error, and the
// check of who is at the other end of a socket, and the pieces of streams.
//
// The guarantee: an error of a kind in package errdefs, or of an end of a context, is of that kind on the other side, and
// no failure of the wire is: a connection that breaks is never not-found.
//
// What surprises: errors of gRPC itself have codes too, so only those codes are kinds that gRPC never makes up.
package wire
