// SPDX-License-Identifier: Apache-2.0

// Package nomad is a provider that runs pods on a HashiCorp Nomad cluster: a pod is a job with one group, a container is a task.
//
// The guarantee: a pod is one job, whose ID follows from its UID, and one allocation. Nomad replaces it only after a drain, a preemption or a
// stop of the allocation, and the provider then stops the job. Values of Secrets and
// tokens are in a Nomad Variable that only the tasks of the job read, never in the job. What changes at Nomad arrives by one event
// stream for all pods.
//
// What surprises: the drivers exec and raw_exec have no images, so their containers need a command. And a container that has failed for
// good ends the others of its pod: that is Nomad's rule for the tasks of a group.
package nomad
