// SPDX-License-Identifier: Apache-2.0

// Package providerrpc serves a provider as a plugin: a separate program that virtual-kubelet uses with
// --provider=plugin. Programs in other languages implement the service in proto/ themselves.
//
// The guarantee: Serve offers exactly the abilities of the provider. A provider in a plugin behaves like a
// built-in one: it has the same results, error kinds, deadlines and order of reports.
//
// Note: the plugin is the server. It keeps its pods while no node is connected. After a restart of the
// plugin or of the node it may get the same requests again.
package providerrpc
