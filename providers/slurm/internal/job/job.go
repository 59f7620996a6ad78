// SPDX-License-Identifier: Apache-2.0

// Package job is the part of a pod's job that knows Slurm. Package podjob runs the pod in the job.
//
// The guarantee: the second of two jobs of a pod does nothing. A job's files are in the directory of its pod on
// the shared file system.
//
// Note: the job is the same program as the node, started by the script of jobs.
package job

// Host is the name by which the script of jobs starts this program: see podjob.Main.
const Host = "slurm"

// The files of a pod, in its directory on the shared file system.
const (
	BundleFile = "bundle.json" // the job's input, with secrets: for the user of the job alone
	StatusFile = "status.json" // the status of the pod, written by the job
	StopFile   = "stop.json"   // the order to stop
	ClaimFile  = "claim"       // the number of the job that runs the pod
	// LogDir has the logs of containers, as NAMESPACE_NAME_UID/CONTAINER/RUN.log in the format of the CRI.
	LogDir = "logs"
	// OutputFile has the output of the job itself.
	OutputFile = "job.log"
)
