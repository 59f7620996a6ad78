// SPDX-License-Identifier: Apache-2.0

// Package examples has programs that run a virtual node, each in the way providers do: nodeutil with an HTTPS
// server, and polled with a backend that cannot report changes. The controllers alone are in the Example of
// package node.
//
// The tests build them, and run a pod on each against a real API server. The surprise: they keep pods in memory,
// so a pod runs nothing.
package examples
