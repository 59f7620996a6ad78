// SPDX-License-Identifier: Apache-2.0

// Package task is the host of package podjob inside a task of Azure Batch, and the layout of the blobs through which it talks with the node.
//
// The guarantee: a pod runs in one run of its task only, whatever Batch runs again, and the logs of a pod are in blobs before the status that
// tells of its end.
//
// What surprises: the process has the identity of the pool, and no other credential: nothing of the task's command line, environment or resource
// files is secret, but for the blobs that those name.
package task
