// SPDX-License-Identifier: Apache-2.0

// Package doctor finds the reasons why a node does not work, before the node runs or while it runs.
//
// The guarantee: one run names every problem with its cause and its fix. It changes nothing in the cluster and
// nothing at the backend. The checks use the settings and the identity of the node, so they have the same
// permissions and network access as the node.
//
// Note: the provider is created as for a running node, because only then can it be asked. To test the connection from the API
// server to the node, the doctor runs a temporary server on the node's port, unless the node itself serves there. This test needs the
// permission to use nodes/proxy; the node does not have it.
package doctor
