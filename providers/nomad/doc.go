// SPDX-License-Identifier: Apache-2.0

// Package nomad is a provider that runs pods on a HashiCorp Nomad cluster: a pod is a job with one group, and a
// container is a task.
//
// The guarantee: a pod is one job, whose ID follows from its UID, and one allocation. Nomad replaces the
// allocation only after a drain, a preemption or a stop of the allocation, and the provider then stops the job.
// Values of Secrets and tokens are in a Nomad Variable that only the tasks of the job can read, never in the
// job. One event stream delivers the changes at Nomad for all pods.
//
// The surprise: the drivers exec and raw_exec have no images, so their containers need a command. A container
// that has failed for good ends the other containers of its pod: this is Nomad's rule for the tasks of a group.
package nomad
