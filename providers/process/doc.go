// SPDX-License-Identifier: Apache-2.0

// Package process is a provider that makes containers on this machine, without another daemon and without root
// rights: in sandboxes of gVisor, by runc or crun, or as plain processes, by configuration. This process unpacks
// images. Each container has a small process of ours beside it that outlives the daemon.
//
// Package podruntime decides everything about pods; this package has the container runtime below it, and the
// configuration.
//
// The guarantee: after a restart or a kill of the daemon, every container is found again with its ID. When a
// container has ended, none of its processes is left.
//
// The surprise: without a configured network of pods, pods use the machine's network, so the address of a pod is
// the node's, and two pods cannot listen on the same port. The isolation of containers depends on the rights of
// the daemon and on the kernel; the provider tries it out, and reports it in the log and in the node's
// information. Programs of the machine run only if the configuration says so. A process that runs this binary
// under the name virtual-kubelet-container never gets to main: it keeps a container.
package process
