// SPDX-License-Identifier: Apache-2.0

// Package examples has programs that run a virtual node, each the way providers do it:
// lowlevel with the controllers alone, nodeutil with an HTTPS server, and polled with a
// backend that cannot tell of changes.
//
// The tests build them, and run a pod on each against a real API server. What surprises: they
// keep pods in memory, so a pod runs nothing.
package examples
