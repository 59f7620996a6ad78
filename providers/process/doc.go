// SPDX-License-Identifier: Apache-2.0

// Package process is a provider whose containers are made on this machine, without another daemon and without rights of
// root: in sandboxes of gVisor, by runc or crun, or as plain processes, as the configuration says. Images are unpacked by
// this process, and each container has a small process of ours beside it that lives on when the daemon ends.
//
// Package podruntime decides everything about pods; here is the container runtime that it calls, and the
// configuration.
//
// The guarantee: after a restart, or a kill, of the daemon every container is found again with its ID; and
// when a container has ended, no process of it is left.
//
// What surprises: without a configured network of pods it is the machine's, so the address of a pod is that of the node,
// and two pods cannot listen on the same port. How far containers are kept apart depends on the rights of the
// daemon and on the kernel; it is found out by trying, and told in the log and in the node's information. Programs of
// the machine are run only if the configuration says so. A process that runs this binary under the name
// virtual-kubelet-container never gets to main: it keeps a container.
package process
