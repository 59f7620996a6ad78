// SPDX-License-Identifier: Apache-2.0

// Package podruntime turns whatever can run containers into a provider that runs pods: it implements
// nodeutil.Provider over the Go interfaces of the Container Runtime Interface (k8s.io/cri-api), be it a
// remote runtime such as containerd or a runtime in the same process.
//
// The guarantee: a pod gets what a kubelet would give it, or is refused with a reason. Nothing is
// kept in memory that the runtime does not know: after a restart of the process every pod
// is found again by the labels of its sandbox, with the same containers.
//
// What surprises: the runtime's containers of a pod that has ended stay, stopped, until the pod is
// deleted, so that their logs can be read; and a sandbox with our label that no pod explains is
// not removed here. The pod controller does that, on evidence.
package podruntime
