// SPDX-License-Identifier: Apache-2.0

// Package podnet is the client of the network process: the program that gives the pods of a node their network,
// without rights on the machine's own network (see decision 52). The program itself is in the module
// providers/process/gvisor.
//
// The daemon starts the network process, and sends it the configuration. The supervisor of a sandbox makes the
// link of a pod, keeps the network's end of it, and hands that end over: the link outlives the daemon, and the
// network process too.
//
// Each message is one packet of JSON on a socket of the kind SOCK_SEQPACKET. testdata/protocol.json of the
// module providers/process/gvisor has an example of each; the tests of both sides read it.
package podnet
