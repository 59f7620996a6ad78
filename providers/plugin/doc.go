// SPDX-License-Identifier: Apache-2.0

// Package plugin is the provider whose backend is a plugin: a provider in a process of its own, in any language, that
// speaks the protocol of package providerrpc over a unix socket or TLS.
//
// The guarantee: no failure of the wire is an answer about pods. While the plugin does not answer, every call is an error,
// the node is not ready and says why, and no pod is lost; when it is back, the status of every pod is asked for again.
//
// What surprises: what the plugin declared when the node was registered holds until virtual-kubelet is restarted. A
// plugin that comes back with less is not used.
package plugin
