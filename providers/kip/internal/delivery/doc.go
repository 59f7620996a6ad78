// SPDX-License-Identifier: Apache-2.0

// Package delivery brings the agent to machines with a stock cloud image: the image's cloud-init reads keys from the user data, and the node copies the
// agent over SSH and starts it as a service.
//
// The guarantee: a machine without the host key that the node made gets nothing. An incomplete copy never runs: the machine compares its hash, and the next
// delivery replaces it.
//
// Note: the last step of a delivery ends the SSH server of the machine, so a machine takes one delivery.
package delivery
