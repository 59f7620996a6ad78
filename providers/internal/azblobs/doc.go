// SPDX-License-Identifier: Apache-2.0

// Package azblobs has the few requests of Azure Blob Storage that pods need, for the node and for the program
// inside tasks.
//
// The guarantee: only one process succeeds to put a blob with Once, and appended bytes are in the blob once,
// whichever answers are lost.
//
// The surprise: the package does not use the SDK of Azure, which brings a library for columnar data. Without the
// SDK a task is smaller and starts faster.
package azblobs
