// SPDX-License-Identifier: Apache-2.0

// Package azurebatch is a test server of Azure Batch: its data plane, the machines of one pool, which really run
// command lines, their identity, and a container of blobs in Azure Storage.
//
// The guarantee: a request has only fields of the description of the service. A task with a lost machine runs
// again on another machine, whatever its retry count is. A task takes blobs with the identity of the pool.
//
// Note: Batch publishes neither the delay of lists nor how a task is killed, so both are settings.
package azurebatch
