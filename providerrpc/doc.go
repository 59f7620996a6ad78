// SPDX-License-Identifier: Apache-2.0

// Package providerrpc makes a provider a plugin: a program of its own, which virtual-kubelet talks to with
// --provider=plugin. Programs in other languages implement the service in proto/ themselves.
//
// The guarantee: Serve offers what the provider can do, no more, and a provider behaves on the other side as it does in
// the program: the same answers, kinds of error, deadlines and order of reports.
//
// What surprises: the plugin is the server. It keeps its pods while no node is connected, and must expect the same
// requests again after it, or the node, was restarted.
package providerrpc
