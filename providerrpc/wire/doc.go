// SPDX-License-Identifier: Apache-2.0

// Package wire is the part of the protocol that node and plugin share: the encoding of Kubernetes objects and of
// error kinds, the check of the peer of a socket, and the chunks of streams.
//
// The guarantee: an error with a kind of package errdefs, or of an ended context, has the same kind on the other
// side. A connection error has no kind: a broken connection is never not-found.
//
// Note: errors of gRPC itself have codes, too. So only codes that gRPC never generates are used for
// kinds.
package wire
