// SPDX-License-Identifier: Apache-2.0

// Package cell is the protocol between a node and the machine that it started for a pod, with both sides of it: Client is the node's, Agent is the
// machine's.
//
// The guarantee: a machine does what the authority of its node says and nothing else, a node believes only the machine that it started, and a
// machine that no node speaks to any more ends by itself.
//
// # Who connects
//
// The node connects to the machine, always: no address of the node is known to a machine. Both sides have certificates of the node's Authority. A machine
// begins without one: it has a key that it made, and the secret of its user data, which proves once that the key is its own. Join signs it then.
// From there on the secret is worth nothing, so a pod that reads the user data has learned nothing.
//
// A machine is named by the token that it was started with, because both sides know that before there is a machine.
//
// # At rest
//
// Client.Watch keeps one connection for each machine. The machine sends its State when that changes; the node sends a byte at times, so that the
// machine knows that it is wanted. There are no other requests.
//
// What surprises: neither side believes the clock of the other one. Certificates are good for a day on both sides of the time they were made, and the
// machine takes its time from the node.
package cell
