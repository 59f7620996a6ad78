// SPDX-License-Identifier: Apache-2.0

// Package slurm is a provider that runs each pod as a job of Slurm, with no server in between.
//
// The guarantee: a pod is one job. The comment of the job identifies its pod. If a pod has two jobs, the second
// job does nothing. All text of users goes through files that only the user of the job can read: the script is
// the same for all pods.
//
// The surprise: the job runs this same program, which it finds on the shared file system. Containers are
// programs of the job's node, or of an image of podman on that node, with the volumes of the pod mounted in
// namespaces of their own.
package slurm
