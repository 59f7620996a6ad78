// SPDX-License-Identifier: Apache-2.0

// Package job is what runs inside a Slurm job: a pod, with the containers as programs of the job's node, or of images.
//
// The guarantee: a pod is run by one job only, its status and logs are in its directory on the shared file system, and when its job ends nothing
// of it runs. Containers are kept by package podruntime, as on a node of its own: init containers, restarts, probes, hooks and grace.
//
// What surprises: it is the same program as the node. A process that runs it under the name virtual-kubelet-job never gets to main.
package job
