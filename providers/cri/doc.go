// SPDX-License-Identifier: Apache-2.0

// Package cri is a provider that runs pods in a container runtime on this machine, such as containerd or CRI-O,
// over the Container Runtime Interface: a small kubelet.
//
// The guarantee: package podruntime decides everything about pods; this package has the connection and the
// configuration. A call that fails during a restart of the runtime has changed nothing here. The runtime's
// containers do not depend on this process: neither its restart nor the runtime's touches a running container.
//
// The surprise: the runtime must not be shared with a kubelet, because a kubelet stops every unknown pod in its
// runtime. And calls are not logged: their messages carry credentials and the environment of containers.
package cri
