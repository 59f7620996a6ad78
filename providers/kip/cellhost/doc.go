// SPDX-License-Identifier: Apache-2.0

// Package cellhost runs the agents of EC2 instances without machines, for measurements of a node with many machines. It is a host for the emulator of EC2.
//
// The guarantee: each instance has the real agent, which reads its user data from the metadata service of the instance, and talks to the node over mutual
// TLS at an own address of the loopback device.
//
// Note: the caller runs the pods. No program of a pod has to run.
package cellhost
