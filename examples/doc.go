// SPDX-License-Identifier: Apache-2.0

// Package examples has programs that run a virtual node, each the way providers do it:
// nodeutil with an HTTPS server, and polled with a backend that cannot tell of changes. The
// controllers alone are in the Example of package node.
//
// The tests build them, and run a pod on each against a real API server. What surprises: they
// keep pods in memory, so a pod runs nothing.
package examples
