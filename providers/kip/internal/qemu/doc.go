// SPDX-License-Identifier: Apache-2.0

// Package qemu starts machines with QEMU on the host of the node.
//
// The guarantee: a machine is found again after any end of the node, two starts with one token are one machine, and a guest reaches nothing of the
// host. A machine whose guest powers off leaves no process.
//
// The state is a directory for each machine: the machine as it was asked for, its user data, its console, and a lock that the process of QEMU has for as
// long as it lives. No number of a process is believed without this lock.
//
// The surprise: a guest has no way out. Its network is QEMU's user network, with the port of the agent forwarded from the loopback of the host. Without
// restrict=on, QEMU shows the guest the loopback of the host, with every service that listens there, at 10.0.2.2. No option of QEMU gives a guest a way
// out and hides the loopback, so no setting of this package turns restrict off.
package qemu
