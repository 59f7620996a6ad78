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
// # Routes
//
// No route answers with a redirect: a path works with and without a slash at
// its end. A nil function answers 501, except for statistics and metrics,
// whose routes are then absent. The handlers do not authenticate anybody;
// package nodeutil puts that in front of them.
package api
