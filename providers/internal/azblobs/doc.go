// SPDX-License-Identifier: Apache-2.0

// Package azblobs has the few requests of Azure Blob Storage that pods need, for the node and for the program inside tasks.
//
// The guarantee: only one process can put a blob with Once, and appended bytes are in the blob once, even if responses are lost.
//
// Note: the package does not use the Azure SDK, because the SDK depends on a library for columnar data. Without it, the program is smaller
// and starts faster.
package azblobs
