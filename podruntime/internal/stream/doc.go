// SPDX-License-Identifier: Apache-2.0

// Package stream connects exec, attach and port-forward sessions of the node's API with a container runtime: over
// SPDY with the URL that a runtime returns, or in the process with one that implements Streamer.
//
// The guarantee: a call returns within a second after its context has ended and leaves no connection and no goroutine
// behind, but for the one that reads what a client types: it ends with the client's input,
// which the caller closes. A command succeeded only if the runtime said so: a connection that
// breaks is an error, where the client of k8s.io/client-go takes it for success.
//
// What surprises: SPDY and not WebSocket, because the streaming server of containerd refuses the latter.
package stream
