// SPDX-License-Identifier: Apache-2.0

// Package podnet is the client of the network process, which runs the network of the pods of a node without
// privileges in the machine's own network (see decision 52). The network process is in the module
// providers/process/gvisor.
//
// The daemon starts the network process, and sends it the configuration. The supervisor of a sandbox creates the
// link of a pod, keeps the network's end open, and passes it to the network process. So the link outlives the
// daemon and the network process.
//
// Each message is one JSON packet on a SOCK_SEQPACKET socket. testdata/protocol.json of the module
// providers/process/gvisor has an example of each message; the tests of both sides read it.
package podnet
