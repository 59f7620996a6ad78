// SPDX-License-Identifier: Apache-2.0

// Package plugin is the half of the InterLink protocol that runs pods; an interLink API server calls it its
// sidecar. The plugin hands pods to any provider, as a node does. Its command is interlink-plugin.
//
// The guarantees: the UID identifies a pod, so a repeated create makes one pod and gives the same answer. The
// plugin reports an accepted pod until the pod is deleted, also after a restart. If the provider loses track of
// a pod, the plugin reports an unknown end, never exit code 0. Records of pods contain secrets; only the user of
// the plugin can read them.
//
// The surprise: the plugin answers both forms of the protocol: the form of its description (POST), and the form
// of the programs (GET and DELETE with bodies). The plugin also answers the requests of a virtual node to an API
// server, so a virtual node can connect to it directly.
package plugin
