// SPDX-License-Identifier: Apache-2.0

// Package stream connects exec, attach and port-forward sessions of the node's API to a container runtime: over SPDY to a URL of the runtime, or in
// this process with a runtime that implements Streamer.
//
// The guarantee: a call returns within a second after the end of its context, and leaves no connection and no goroutine, except for the reader of the
// client's input. That reader ends with the input; the caller closes the input. A command succeeds only if the runtime reports success: a broken
// connection is an error, which the client of k8s.io/client-go mistakes for success.
//
// Note: it uses SPDY, not WebSocket, because the streaming server of containerd refuses the latter.
package stream
