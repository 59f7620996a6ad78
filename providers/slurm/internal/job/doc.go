// SPDX-License-Identifier: Apache-2.0

// Package job has what a Slurm job knows of Slurm: package podjob runs the pod in it.
//
// The guarantee: of two jobs of a pod the second one does nothing, and what a job reads and writes is in the directory of its pod on the shared
// file system.
//
// What surprises: the job is the same program as the node, started by the script of jobs.
package job

// Host is the name by which the script of jobs starts this program: see podjob.Main.
const Host = "slurm"
