// SPDX-License-Identifier: Apache-2.0

// Package azurebatch is a provider that runs pods as tasks of Azure Batch, on an existing pool of virtual
// machines.
//
// The guarantee: a pod runs once, even if Batch runs its task again by itself. Tasks contain nothing secret. The
// statuses of pods are in blobs, which outlive the machines.
//
// The surprise: each task runs this program itself. It brings the images and keeps the containers, so the pool
// must not have a containerConfiguration: otherwise every task would run inside a container.
package azurebatch
