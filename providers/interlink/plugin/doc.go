// SPDX-License-Identifier: Apache-2.0

// Package plugin is the half of the InterLink protocol that runs pods: what an interLink API server calls its sidecar. It hands them to any
// provider, as a node would: the command interlink-plugin.
//
// It promises that a pod is its UID: a create that comes twice makes one pod, and says the same of it; that a pod which was accepted is told
// of until it is deleted, also after a restart, and one of which the provider has lost track with an end that nobody knows, never with
// exit code 0; and that what it keeps of pods, with their secrets, is readable by its own user alone.
//
// What surprises: it answers both forms of the protocol, that of its description (POST) and that of the programs (GET and DELETE with
// bodies), and what an API server answers, so that a virtual node needs none.
package plugin
