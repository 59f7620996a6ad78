// SPDX-License-Identifier: Apache-2.0

// Package qemu starts machines with QEMU on the host of the node.
//
// The guarantee: a restarted node always finds its machines again, two starts with the same token make one machine, and a guest has no access to the
// host. A machine whose guest powers off leaves no process.
//
// Each machine has a directory with its record, its user data, its console, and a lock. The QEMU process holds the lock while it lives. The driver
// trusts a process ID only while the process holds this lock.
//
// Note: a guest has no egress. Its network is QEMU's user network, which forwards the agent's port from the loopback of the host. Without
// restrict=on, QEMU shows the guest the loopback of the host, with every service there, at 10.0.2.2. QEMU has no option that gives egress and hides
// the loopback, so no setting of this package turns restrict off.
package qemu
