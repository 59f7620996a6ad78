// SPDX-License-Identifier: Apache-2.0

// Package doctor looks for the reasons why a node does not work, before it runs or beside it.
//
// The guarantee: every problem is named with its cause and what to do about it, all of them
// in one run; nothing in the cluster and nothing at the backend is changed. The checks use the
// settings and the identity of the node, so what they may and reach is what the node may and reaches.
//
// What surprises: the provider is made as for a run, since only then can it be asked. The way from
// the API server to the node is tried with a server that the doctor puts on the node's port for that
// long, unless the node itself serves there; it takes the right to use nodes/proxy, which the node does not have.
package doctor
