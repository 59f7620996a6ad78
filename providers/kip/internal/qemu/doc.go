// SPDX-License-Identifier: Apache-2.0

// Package qemu starts machines with QEMU on the host of the node.
//
// The guarantee: a machine is found again after any end of the node, two starts with one token are one machine, and a guest reaches nothing of the
// host. A machine whose guest powers off leaves no process.
//
// The state is a directory for each machine: the machine as it was asked for, its user data, its console, and a lock that the process of QEMU has for as
// long as it lives. No number of a process is believed without this lock.
//
// What surprises: the network of a guest is QEMU's own, with its ports forwarded from the loopback of the host. Without Config.Egress it has no way out at
// all: QEMU would show the guest the loopback of the host, with all that listens there, as one of its own addresses.
package qemu
