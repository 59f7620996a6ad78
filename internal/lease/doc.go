// SPDX-License-Identifier: Apache-2.0

// Package lease decides whether this process may act for a node. The lease of the node names the acting process.
//
// The guarantee: every effect that Fence allows begins while this process certainly holds the lease. Two
// exceptions: a disabled Fence, where the lease is forbidden and says nothing, and AllowStop, which passes
// longer for one stop. Claim counts the changes of the lease and the time on this machine, and never compares
// the clocks of two machines.
//
// The surprise: an annotation names the process, because the control plane expects the node's name in the holder
// identity.
package lease
