// SPDX-License-Identifier: Apache-2.0

// Package job is the part of a pod's job that knows Slurm. Package podjob runs the pod in the job.
//
// The guarantee: the second of two jobs of a pod does nothing. A job's files are in the directory of its pod on
// the shared file system.
//
// The surprise: the job is the same program as the node, started by the script of jobs.
package job

// Host is the name by which the script of jobs starts this program: see podjob.Main.
const Host = "slurm"
