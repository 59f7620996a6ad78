// SPDX-License-Identifier: Apache-2.0

// Package api serves the part of the kubelet's HTTP API that kubectl, the API server and metrics-server use:
// logs, exec, attach, port-forward, the list of pods, statistics and health.
//
// The guarantee: the context of a provider call ends within a second after the client went away, for plain requests, SPDY and WebSocket
// alike. A provider that panics costs one request, not the process.
//
// Note: a handler returns only when the function of the provider has returned. When the client goes, or
// half a second after the base context of the server ends, the connection is closed and the streams end. So a
// provider that copies streams stops without looking at the context. A provider that ignores both keeps a
// goroutine, but not the connection. It does not delay the Shutdown of the server for exec, attach and
// port-forward. For logs it does, up to the deadline of Shutdown.
//
// # Streams
//
// Exec and attach are served over SPDY (v1 to v5) and WebSocket (v1, v4 and v5, binary and base64). Port-forward is served over SPDY, over
// WebSocket with ports in the query, and over SPDY within a WebSocket. The memory of one client is bounded per frame (1 MiB), per stream
// and per session. All clients share a budget for unread data; a client waits while the budget is exhausted. A client that violates the
// protocol or its limits receives the reason, and its connection is closed. Each request leaves one line in the log when it ends, without
// the content of the streams.
//
// # Routes
//
// No route answers with a redirect: a path works with and without a trailing slash. A nil function answers 501, except for statistics and
// metrics, whose routes are then absent. Routes of a kubelet that a virtual node does not serve (/run, /logs, /checkpoint, and /debug
// unless Profiling or SetVerbosity is set) answer 501 with one line that gives the reason.
//
// /healthz and /readyz check the same things: a node that is not ready is not healthy. /livez fails only when
// the process must be restarted. Each has pages for its parts, such as /healthz/ping, and supports ?verbose and
// ?exclude.
//
// The handlers do not authenticate callers; package nodeutil puts authentication in front of them.
package api
