// SPDX-License-Identifier: Apache-2.0

// Package stream connects exec, attach and port-forward sessions of the node's API with a container runtime:
// over SPDY with the URL from a runtime, or in the process with a runtime that implements Streamer.
//
// The guarantee: a call returns within a second after its context has ended and leaves no connection behind, and
// no goroutine except for the reader of the client's input. That reader ends with the input; the caller closes
// the input. A command succeeds only if the runtime reports success: a broken connection is an error. The client
// of k8s.io/client-go takes it for success.
//
// The surprise: it uses SPDY and not WebSocket, because the streaming server of containerd refuses the latter.
package stream
