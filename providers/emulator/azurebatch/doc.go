// SPDX-License-Identifier: Apache-2.0

// Package azurebatch is a server of Azure Batch for tests: its data plane, the machines of one pool, which really run command lines, their
// identity, and a container of blobs in Azure Storage.
//
// The guarantee: a request has the fields that the description of the service has, and no others; a task whose machine is lost runs again on
// another one, whatever its retry count says; and what a task takes from blobs it takes with the identity of the pool.
//
// What surprises: Batch publishes neither how late lists are nor how a task is killed, so both are settings.
package azurebatch
