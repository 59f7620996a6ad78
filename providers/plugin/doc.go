// SPDX-License-Identifier: Apache-2.0

// Package plugin is a provider whose backend is a plugin. A plugin is a provider in a separate process, in any
// language. It implements the protocol of package providerrpc over a unix socket or TLS.
//
// The guarantee: a connection error never counts as an answer about pods. While the plugin does not answer, every
// call returns an error, the node is not ready with a reason, and no pod is lost. When the plugin is back, the
// provider requests the status of every pod.
//
// Note: the declarations of the plugin in the first handshake hold until virtual-kubelet restarts. A
// plugin that later declares less is not used.
package plugin
