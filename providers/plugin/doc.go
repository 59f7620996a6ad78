// SPDX-License-Identifier: Apache-2.0

// Package plugin is a provider with a plugin as its backend. A plugin is a provider in a process of its own, in
// any language. It speaks the protocol of package providerrpc over a unix socket or TLS.
//
// The guarantee: a failure of the wire never counts as an answer about pods. While the plugin does not answer,
// every call returns an error, the node is not ready and reports why, and no pod is lost. When the plugin is
// back, the provider asks for the status of every pod again.
//
// The surprise: the declarations of the plugin at the registration of the node hold until virtual-kubelet
// restarts. A plugin that comes back with less is not used.
package plugin
