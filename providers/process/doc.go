// SPDX-License-Identifier: Apache-2.0

// Package process is a provider that runs containers on this machine, without another daemon and without root: in
// gVisor sandboxes, with runc or crun, or as plain processes, as configured. The daemon pulls and unpacks the
// images. Each container has a supervisor, a small process that outlives the daemon.
//
// Package podruntime manages the pods; this package is the container runtime below it, and the configuration.
//
// The guarantee: after a restart or a kill of the daemon, every container is found again with its ID. When a
// container has ended, none of its processes is left.
//
// Note: with isolation none or podNetwork host, pods use the host network, so the address of a pod is the
// node's, and two pods cannot listen on the same port. The isolation of containers depends on the privileges of
// the daemon and on the kernel; the provider tests it at the start, and reports it in the log and in the node's
// status. Programs of the machine run only with isolation none. A process that runs this binary under the name
// virtual-kubelet-container never reaches main: it is a supervisor.
package process
