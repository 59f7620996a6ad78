// SPDX-License-Identifier: Apache-2.0

// Package azblobs has the few requests of Azure Blob Storage that pods need, for the node and for the program inside tasks.
//
// The guarantee: a blob that is put with Once is put by one process only, and appended bytes are in the blob once, whatever answers are lost.
//
// What surprises: it is not the SDK of Azure, which brings a library for columns of data: a task starts faster and is smaller without it.
package azblobs
