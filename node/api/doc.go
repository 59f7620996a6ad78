// SPDX-License-Identifier: Apache-2.0

// Package api serves the part of the kubelet's HTTP API that kubectl, the API
// server and metrics-server use: logs, exec, attach, port-forward, the list of
// pods, statistics and health.
//
// A provider is called with a context that ends no later than a second after
// the client went away, for plain requests, SPDY and WebSocket alike. A
// provider that panics costs one request, not the process.
//
// What surprises: a handler returns only when the function of the provider
// has returned. When the client goes, or half a second after the base context of
// the server ends, the connection is closed and the streams end, so a provider that
// copies streams stops without looking at the context. A provider that ignores
// both keeps a goroutine, but not the connection, and does not hold up the
// Shutdown of the server for exec, attach and port-forward; for logs it does,
// up to the deadline of Shutdown.
//
// # Streams
//
// Exec and attach are served over SPDY (v1 to v5) and WebSocket (v1, v4 and v5, binary and base64);
// port-forward over SPDY, over WebSocket with ports in the query, and over SPDY within a WebSocket.
// What one client can make the node hold is bounded by frame (1 MiB), by stream and by session, and all clients share a
// budget for what nobody has read: beyond it a client waits. A client that sends what it may not is told why, and cut. Each
// request leaves one line in the log when it ends, without what was said in it.
//
// # Routes
//
// No route answers with a redirect: a path works with and without a slash at
// its end. A nil function answers 501, except for statistics and metrics,
// whose routes are then absent. What a kubelet serves and a virtual node does not
// (/run, /logs, /checkpoint, and /debug unless Profiling or SetVerbosity is set) answers 501 with
// one line that says why.
//
// /healthz and /readyz look at the same: a node that is not ready is not healthy. /livez
// fails only when the process is no use any more. Each has pages for its
// parts, such as /healthz/ping, and knows ?verbose and ?exclude.
//
// The handlers do not authenticate anybody; package nodeutil puts that in front of
// them.
package api
