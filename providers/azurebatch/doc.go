// SPDX-License-Identifier: Apache-2.0

// Package azurebatch is a provider that runs pods as tasks of Azure Batch, on a pool of virtual machines that is there already.
//
// The guarantee: a pod runs once, also when Batch runs its task again by itself. Nothing secret is in a task. What a pod says and how it ends
// is in blobs, which outlive its machine.
//
// What surprises: this program itself is what a task runs. It brings the images and keeps the containers, so the pool must be one without
// containerConfiguration: on another one every task would be inside a container.
package azurebatch
