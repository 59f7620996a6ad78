// SPDX-License-Identifier: Apache-2.0

// Package ec2 emulates the part of Amazon EC2 (version 2016-11-15) that starts, lists, tags and terminates instances, and the
// metadata service of an instance. A Host runs the machines, so that a client meets a real boot from its own user data.
//
// The guarantee: each parameter of a request is one of the vendor's service model (fields.json). A client token makes one instance. An
// instance whose machine powers itself off ends according to its InstanceInitiatedShutdownBehavior.
//
// Note: it checks that a request has a signature of version 4, and not the signature itself. Without a Host,
// instances have addresses and no machine.
package ec2
