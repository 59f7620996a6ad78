// SPDX-License-Identifier: Apache-2.0

// Package cell is the protocol between a node and the machine that it started for a pod. Client is the node's side, and Agent is the machine's side.
//
// The guarantee: a machine obeys only the authority of its node, and a node believes only the machine that it started. A machine ends itself after
// OrphanAfter without contact to a node, or, while its pod runs, after AbandonedAfter, if that is set.
//
// # Who connects
//
// The node always connects to the machine. A machine knows no address of the node. Both sides have certificates of the node's Authority. A machine starts
// without a certificate. It has its own key, and the secret in its user data. The secret proves once that the key is the machine's own. Then Join signs
// the key, and the secret is worthless: a pod that reads the user data gains nothing.
//
// The token names the machine, because both sides know the token before the machine exists.
//
// # At rest
//
// Client.Watch keeps one connection for each machine. The machine sends its State at each change. The node sends a byte from time to time, so that the
// machine knows that the node needs it. The only other requests renew the machine's certificate after half of its validity.
//
// Note: neither side trusts the clock of the other. Certificates are valid from a day before their creation, and the machine sets its clock to the
// time of the node.
package cell
