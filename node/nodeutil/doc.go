// SPDX-License-Identifier: Apache-2.0

// Package nodeutil assembles a whole virtual node from a provider: clients, informers, the pod and node
// controllers and the kubelet's HTTPS server.
//
// The guarantee: NewNode checks and connects everything without starting anything; Run starts everything, and nothing outlives Run.
// Heartbeats have their own client whenever possible, so that pod traffic never makes the node appear unreachable.
//
// Note: the server authenticates and authorizes even if the program forgot to ask for it. WebhookAuth protects handlers that are
// not from WithAuth, and provider routes that a request reaches without a WithAuth. To serve everybody, a program must use NoAuth or
// WithInsecureUnauthenticatedServer. See NodeConfig.Handler.
package nodeutil
