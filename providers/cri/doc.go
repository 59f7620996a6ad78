// SPDX-License-Identifier: Apache-2.0

// Package cri is a provider that runs pods in a container runtime on this machine, such as containerd or CRI-O,
// over the Container Runtime Interface: a small kubelet.
//
// The guarantee: a restart of this process or of the runtime does not affect running containers. Package
// podruntime manages the pods; this package has the connection and the configuration.
//
// Note: the runtime must not be shared with a kubelet, because a kubelet stops all unknown pods in its
// runtime. Calls are not logged, because their messages contain credentials and the environment of containers.
package cri
