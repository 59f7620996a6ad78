// SPDX-License-Identifier: Apache-2.0

// Package podruntime turns a container runtime into a provider that runs pods. It implements nodeutil.Provider with the Go interfaces of the
// Container Runtime Interface (k8s.io/cri-api), for a remote runtime such as containerd, or a runtime in the same process.
//
// The guarantee: a pod gets the same features as from a kubelet, or is refused with a reason. The runtime stores all state: after a restart of the
// process, every pod is found by the labels of its sandbox, with the same containers.
//
// Note: the containers of an ended pod stay, stopped, until the pod is deleted, so that their logs can be read. This package does not remove
// a sandbox with its label but without a pod. The pod controller does, after it has verified that the pod is gone.
package podruntime
