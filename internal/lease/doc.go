// SPDX-License-Identifier: Apache-2.0

// Package lease decides whether this process may act for a node. The lease of the node names the acting process.
//
// The guarantee: every effect that Fence allows begins while this process certainly holds the lease. There are two exceptions: a disabled Fence, if
// this process has no access to the lease, and AllowStop, which allows a stop of a pod for longer. Claim relies on changes of the lease and on the
// clock of this machine, and never compares the clocks of two machines.
//
// Note: an annotation names the process, because the control plane expects the node's name in the holder identity.
package lease
