// SPDX-License-Identifier: Apache-2.0

// Package examples has programs that run a virtual node as providers do: nodeutil with an HTTPS server, and polled with a backend that cannot report
// changes. The Example of package node shows only the controllers.
//
// The tests build them, and run a pod on each against a real API server. Note: they keep pods in memory, so pods run no programs.
package examples
