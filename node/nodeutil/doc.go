// SPDX-License-Identifier: Apache-2.0

// Package nodeutil assembles a whole virtual node from a provider: clients, informers, the pod and node
// controllers and the kubelet's HTTPS server.
//
// The guarantee: NewNode checks and connects everything without starting anything; Run starts it, and nothing
// outlives Run. Heartbeats have a client of their own whenever possible, so that pod traffic never makes the
// node look dead.
//
// The surprise: the server authenticates and authorizes even if the program forgot to ask for it. A handler that
// did not come from WithAuth, and provider routes that a request reaches without a WithAuth, get WebhookAuth. To
// serve everybody, a program must name NoAuth or WithInsecureUnauthenticatedServer. See NodeConfig.Handler.
package nodeutil
