// SPDX-License-Identifier: Apache-2.0

// Package lease decides whether this process may act for a node: by the node's lease, which names the process that does.
//
// The guarantee: an effect that Fence allows begins while the lease is certainly this process's, unless Fence is disabled, because a
// lease that is forbidden says nothing. AllowStop passes longer, for one stop. Claim compares no clocks of two
// machines: it goes by the changes that it sees, and by the time that passes here.
//
// What surprises: the holder identity of a lease cannot name the process, as the control plane wants the node's name there. An
// annotation does.
package lease
