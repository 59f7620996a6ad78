// SPDX-License-Identifier: Apache-2.0

// Package podruntime turns a container runtime into a provider that runs pods. It implements nodeutil.Provider
// over the Go interfaces of the Container Runtime Interface (k8s.io/cri-api), for a remote runtime such as
// containerd or a runtime in the same process.
//
// The guarantee: a pod gets the same as from a kubelet, or is refused with a reason. Memory holds nothing that
// the runtime does not know: after a restart of the process, every pod is found again by the labels of its
// sandbox, with the same containers.
//
// The surprise: the containers of an ended pod stay, stopped, until the pod is deleted, so that their logs can
// be read. And a sandbox with our label but without a pod is not removed here. The pod controller does that, on
// evidence.
package podruntime
