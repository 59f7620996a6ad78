// SPDX-License-Identifier: Apache-2.0

// Package providerrpc turns a provider into a plugin: a separate program that virtual-kubelet uses with
// --provider=plugin. Programs in other languages implement the service in proto/ themselves.
//
// The guarantee: Serve offers exactly the abilities of the provider. A provider behaves on the other side as in
// the program: the same answers, kinds of error, deadlines and order of reports.
//
// The surprise: the plugin is the server. It keeps its pods while no node is connected. It must expect the same
// requests again after a restart of the plugin or of the node.
package providerrpc
